// Package mcp lets agents act through the Model Context Protocol: one tool for each
// action, the observation as text and picture.
//
// It is the agent's surface. It starts no episode and tells no reward: that is the
// orchestrator's, over RPC. An agent's token (GetEpisode gives it out) opens one episode
// here and nothing anywhere else.
//
// Over HTTP there are no sessions: each request names its episode by its token, so that a
// client may reconnect, and the server keeps nothing for one that vanishes but the
// episode with its lease.
package mcp
