"""Pommel for Python: Gymnasium environments in a real browser, paid by database rows.

    import pommel

    env = pommel.make("buy-item", world="shop")
    obs, info = env.reset(seed=7)
    obs, reward, terminated, truncated, info = env.step('click(selector="#submit-order")')
"""

from . import aio
from .client import Client
from .env import PommelEnv
from .errors import (
    Canceled,
    DeadlineExceeded,
    EpisodeOver,
    InfrastructureError,
    InternalError,
    InvalidArgument,
    LeaseExpired,
    NotFound,
    PommelError,
    ResourceExhausted,
    StaleEpisode,
    Unauthenticated,
    Unavailable,
    Unsupported,
    WorldLost,
)
from .registration import make, make_vec, register_envs, register_tasks
from .server import Server, serve
from .session import Session
from .types import Info, Observation, Perturbation, Result, Screenshot, ServerInfo, Task, View

__version__ = "0.1.0"

__all__ = [
    "Canceled",
    "Client",
    "DeadlineExceeded",
    "EpisodeOver",
    "Info",
    "InfrastructureError",
    "InternalError",
    "InvalidArgument",
    "LeaseExpired",
    "NotFound",
    "Observation",
    "Perturbation",
    "PommelEnv",
    "PommelError",
    "ResourceExhausted",
    "Result",
    "Screenshot",
    "Server",
    "ServerInfo",
    "Session",
    "StaleEpisode",
    "Task",
    "Unauthenticated",
    "Unavailable",
    "Unsupported",
    "View",
    "WorldLost",
    "aio",
    "make",
    "make_vec",
    "register_envs",
    "register_tasks",
    "serve",
]

register_envs()
