"""An agent that was written for BrowserGym buys things in Pommel's shop, without a change.

It reads observations through BrowserGym's own tools, and answers in the way that language models do. A few
rules stand in for the model. Needs: pip install browsergym-core; run it with `make examples`.
"""

from __future__ import annotations

import re
from typing import Any

from browsergym.core.action.highlevel import HighLevelActionSet
from browsergym.utils.obs import flatten_axtree_to_str

import pommel


class Agent:
    """Puts a product into the cart: all that it knows of the shop is what the page shows."""

    def __init__(self) -> None:
        self.actions = HighLevelActionSet(subsets=["chat", "bid", "nav", "tab", "infeas"], strict=False, multiaction=False)
        self.plan: list[tuple[str, str]] = []

    def obs_preprocessor(self, obs: dict[str, Any]) -> dict[str, Any]:
        tree = flatten_axtree_to_str(obs["axtree_object"], extra_properties=obs["extra_element_properties"], with_clickable=True)
        return {"goal": obs["goal_object"][0]["text"], "axtree": tree, "error": obs["last_action_error"]}

    def get_action(self, obs: dict[str, Any]) -> str:
        if not self.plan:
            wanted = re.search(r'Put (\d+) of "(.+?)"', obs["goal"])
            if wanted is None:
                return 'report_infeasible("this agent can only put things into carts")'
            quantity, product = wanted.groups()
            self.plan = [
                ("combobox 'Search products'", product), ("button 'Search'", ""), (f"link {product!r}", ""),
                ("spinbutton 'Quantity'", quantity), ("button 'Add to cart'", ""),
            ]  # fmt: skip
        want, value = self.plan.pop(0)
        found = re.search(rf"\[(\w+)\] {re.escape(want)}", obs["axtree"])
        if found is None:
            return f"send_msg_to_user({f'I see no {want}'!r})"
        action = f"fill({found[1]!r}, {value!r})" if value else f"click({found[1]!r})"
        self.actions.to_python_code(action)  # raises if BrowserGym does not know the action
        return f"I will use the {want}.\n```\n{action}\n```"


def run(env: Any, seed: int) -> tuple[float, dict[str, Any]]:
    """Run one episode; returns the sum of its rewards, and the last info."""
    agent = Agent()
    obs, info = env.reset(seed=seed)
    total, done = 0.0, False
    while not done:
        action = agent.get_action(agent.obs_preprocessor(obs))
        obs, reward, terminated, truncated, info = env.step(action)
        total, done = total + reward, terminated or truncated
    return total, info


def main() -> None:
    env = pommel.make("add-to-cart", world="shop", browsergym=True)
    try:
        for seed in (7, 17, 27):
            reward, info = run(env, seed)
            print(f"seed {seed}: reward {reward:.2f}, success {info['success']}, stages {info['stages']}")
            if not info["success"]:
                raise SystemExit("the agent failed")
    finally:
        env.close()


if __name__ == "__main__":
    main()
