"""Trains a language model with TRL: GRPO, and a page of Pommel's as the environment that it acts on.

`GRPOTrainer(environment_factory=...)` makes an environment for each generation and offers its methods to the
model as tools. `Shop` below is all that is needed for it; it fits any model that calls tools.

No weights are loaded here, so that this runs everywhere: the model is a transformer of 0.1 million parameters with
random weights, and its vocabulary is a handful of whole tool calls beside some words. It learns to take one
article out of one cart. Put your own model and tokenizer in place of `tiny_model` and `tiny_tokenizer`.

Needs TRL 1.16: pip install "pommel[trl]". `make examples` runs it with --quick, which makes two updates.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from datasets import Dataset
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

import pommel


class Shop:
    """An environment as TRL wants it: reset, and tools with types and docstrings.

    Its session opens with the first reset: TRL makes one more instance than it plays with at first, to look at it.
    """

    server: pommel.Server  # set before the trainer starts

    def __init__(self) -> None:
        self._session: pommel.Session | None = None
        self._earned: float | None = None
        self._done = False

    def reset(self, task: str, seed: int, **row: Any) -> str:
        """Start the episode of a row of the data set; the answer is appended to its prompt."""
        if self._session is None:
            self._session = pommel.Session(self.server.client(), view=pommel.View(max_text=800))
            _open.append(self._session)
        try:
            first = self._session.reset(task, seed)
        except pommel.InfrastructureError as e:
            return self._lost(e)
        self._earned, self._done = 0.0, False
        return f"{first.instruction}\n{first.observation.text}"

    def click(self, bid: str) -> str:
        """Click an element of the page.

        Args:
            bid: The number in brackets before the element.

        Returns:
            The page as it is then.
        """
        return self._act(f"click({bid!r})")

    def finish(self, answer: str) -> str:
        """Say that the task is done.

        Args:
            answer: What was asked for, or nothing.

        Returns:
            That the episode has ended.
        """
        return self._act(f"finish({answer!r})")

    def get_reward(self) -> float | None:
        """What the rows of the database say that the episode has earned.

        None when the infrastructure has lost it: TRL leaves such a generation out, where a 0 would blame the model.
        """
        return self._earned

    def _act(self, action: str) -> str:
        if self._session is None or self._earned is None or self._done:
            return "The episode has ended."
        try:
            result = self._session.step(action)
        except pommel.InfrastructureError as e:
            return self._lost(e)
        self._earned += result.reward
        self._done = result.terminated or result.truncated
        if self._done:
            return "The episode has ended."
        error = result.observation.last_action_error
        return (f"The action failed: {error}\n" if error else "") + result.observation.text

    def _lost(self, e: pommel.InfrastructureError) -> str:
        self._earned, self._done = None, True
        return f"The environment failed, which is not your doing: {e}"


_open: list[pommel.Session] = []

# Numbers of elements: account, orders, cart, sign out, and the buttons that take the cart's first, second and third
# article out. A call is one token, so a model that knows nothing makes some.
BIDS = ("6", "7", "8", "9", "32", "37", "42")
CALLS = [f'<tool_call>{{"name": "click", "arguments": {{"bid": "{bid}"}}}}</tool_call>' for bid in BIDS]
WORDS = "Tidewater Goods Your cart Orders account Take out of Remove Summary Sign in The episode has ended action failed".split()
TURNS = ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>")

TEMPLATE = """
{%- for m in messages %}{{ '<|' + m.role + '|>' }}{{ m.content if m.content is string else '' }}
{%- for call in m.tool_calls or [] %}{{ '<tool_call>{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}</tool_call>' }}{% endfor -%}
{{ '<|end|>' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"""


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """One token a word, and one for each of CALLS."""
    words = ["<unk>", "<pad>", "<|end|>", *TURNS, *CALLS, *dict.fromkeys(WORDS)]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.add_special_tokens([AddedToken(w, normalized=False, special=True) for w in words[: -len(dict.fromkeys(WORDS))]])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", pad_token="<pad>", eos_token="<|end|>", padding_side="left"
    )
    tokenizer.chat_template = TEMPLATE
    # How TRL finds the calls in what the model has written.
    tokenizer.response_template = {
        "defaults": {"role": "assistant"},
        "start_anchor": "<|assistant|>",
        "fields": {
            "tool_calls": {
                "open": "<tool_call>", "close_pattern": r"</tool_call>\s*", "repeats": True, "content": "json",
                "transform": {"type": "function", "function": "{content}"},
            },
            "content": {"close_pattern": r"<\|end\|>\s*", "content": "text"},
        },
    }  # fmt: skip
    return tokenizer


def tiny_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=2048,
            pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
        )
    )  # fmt: skip


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--task", default="remove-from-cart")
    p.add_argument("--episode", type=int, default=3, help="its seed")
    p.add_argument("--updates", type=int, default=40)
    p.add_argument("--generations", type=int, default=4, help="in each update, each in a browser of its own")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--quick", action="store_true", help="two updates, to see that it works")
    args = p.parse_args()
    if args.quick:
        args.updates = 2

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # the browsers need the processors
    tokenizer = tiny_tokenizer()
    rows = [{"prompt": [{"role": "user", "content": ""}], "task": args.task, "seed": args.episode}] * args.updates
    with pommel.serve(world="shop", worlds=args.generations) as server, tempfile.TemporaryDirectory() as out:
        Shop.server = server
        config = GRPOConfig(
            output_dir=out, seed=args.seed, use_cpu=True, bf16=False, report_to="none", save_strategy="no",
            max_steps=args.updates, per_device_train_batch_size=args.generations, num_generations=args.generations,
            max_tool_calling_iterations=4, max_completion_length=1200, learning_rate=3e-3, beta=0.0,
            logging_steps=1, disable_tqdm=True, gradient_checkpointing=False,
        )  # fmt: skip
        trainer = GRPOTrainer(
            model=tiny_model(tokenizer), args=config, train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer, environment_factory=Shop,
        )  # fmt: skip
        try:
            trainer.train()
        finally:
            for session in _open:
                session.close()
        log = [entry for entry in trainer.state.log_history if "reward" in entry]
        if len(log) != args.updates:
            raise SystemExit(f"{len(log)} updates were made, want {args.updates}")
        part = max(len(log) // 4, 1)
        calls = sum(e["tools/call_frequency"] for e in log) / len(log)
        first, last = (sum(e["reward"] for e in x) / len(x) for x in (log[:part], log[-part:]))
        print(f"{len(log)} updates, {calls:.1f} tool calls a generation, mean reward {first:.2f} at first, {last:.2f} at last")


if __name__ == "__main__":
    main()
