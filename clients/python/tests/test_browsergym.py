"""Agents of BrowserGym: its own tools read our observations, and its action strings work here."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import gymnasium
import pytest
from browsergym.core.action.highlevel import HighLevelActionSet
from browsergym.utils.obs import flatten_axtree_to_str, flatten_dom_to_str, overlay_som, prune_html
from fake import FakeGym
from gymnasium.utils.env_checker import check_env

import pommel
from pommel import tree

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import browsergym_agent  # noqa: E402

PAGE = """RootWebArea 'Orders', focused
\t[0] banner ''
\t\t[1] navigation 'Main'
\t\t\t[3] link 'Home', current='page'
\t[5] main ''
\t\t[6] heading 'It\\'s "here"', level=1
\t\t[7] searchbox 'Search' value='a, b=c', placeholder='Number or name', focused
\t\t[8] combobox 'Status' value='Open', options=['Any', 'Open', 'Paid, late' (disabled), … (+3 options)]
\t\t[9] checkbox 'Only mine', checked='true'
\t\t[10] button 'Apply', disabled=True
\t\t[12] row 'Order | Total', header
\t\t\t[14] link '#1001'
\t\tStaticText 'Prices [1] include tax.'
\t[a] Iframe 'Payment'
\t\t[a0] textbox "Card's number", required
(page of 1280 x 2448 px; in view: x 0 to 1280, y 0 to 720)"""

TAGS = {"0": "header", "1": "nav", "3": "a", "5": "main", "6": "h1", "7": "input", "8": "select", "9": "input", "10": "button",
        "12": "tr", "14": "a", "a": "iframe", "a0": "input"}  # fmt: skip


def plain(text: str) -> list[str]:
    """Lines as BrowserGym prints them: it leaves some attributes out, and options are nodes of their own."""
    text = re.sub(r", (level|readonly)=\S+|, options=\[.*\]", "", text).replace(", header\n", ", header=True\n")
    return [line for line in text.split("\n") if not line.startswith("(page of") and "option " not in line]


def test_text_becomes_the_same_text() -> None:
    ax = tree.axtree(tree.parse(PAGE))
    text = flatten_axtree_to_str(ax, skip_generic=False, remove_redundant_static_text=False)
    assert plain(text) == [line.replace("'It\\'s \"here\"'", repr("It's \"here\"")) for line in plain(PAGE)]
    assert "option 'Open', selected=True" in text and "option 'Paid, late', disabled=True" in text
    assert [n["browsergym_id"] for n in ax["nodes"] if "browsergym_id" in n] == list(TAGS)


def test_dom_has_the_elements() -> None:
    elements = {bid: {"bid": bid, "tag": tag} for bid, tag in TAGS.items()}
    seen = {"visibility": 1.0, "bbox": [0.0, 0.0, 10.0, 10.0], "clickable": True, "set_of_marks": True}
    properties = {bid: {**seen, "visibility": 0.0 if bid == "14" else 1.0} for bid in TAGS}
    html = flatten_dom_to_str(tree.dom(tree.parse(PAGE), "Orders", elements, properties), properties, with_clickable=True)
    for bid, tag in TAGS.items():
        assert re.search(rf'<{tag}\b[^>]* bid="{bid}"', html), bid
    for piece in ("<title>", "Prices [1] include tax.", 'value="a, b=c"', "Paid, late", 'aria-label="Card\'s number"', "clickable"):
        assert piece in html
    assert 'bid="3"' in prune_html(html)
    visible = flatten_dom_to_str(tree.dom(tree.parse(PAGE), "", elements, properties), properties, filter_visible_only=True)
    assert 'bid="3"' in visible and 'bid="14"' not in visible


@pytest.mark.parametrize("text", ["", "RootWebArea ''", "\t\t\t[3] link 'far in'", "junk\n\t[1] link 'cut \\", "(cut: no more)"])
def test_cut_text_is_read_as_far_as_it_goes(text: str) -> None:
    root = tree.parse(text)
    flatten_axtree_to_str(tree.axtree(root))
    flatten_dom_to_str(tree.dom(root, "", {}, {}))
    assert not text.strip("\t") or text == "RootWebArea ''" or root.children


def test_environment(fake: FakeGym) -> None:
    fake.size = (64, 48)
    fake.text = PAGE
    env = pommel.make("buy-item", fake.address, browsergym=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
    obs, info = env.reset(seed=7)
    assert [m["role"] for m in obs["chat_messages"]] == ["assistant", "user"] and obs["goal"] == "Buy it."
    assert obs["open_pages_urls"] == ("http://shop/",) and obs["url"] == "http://shop/" and list(obs["active_page_index"]) == [0]
    assert obs["extra_element_properties"]["1"] == {"visibility": 1.0, "bbox": [1.0, 2.0, 3.0, 4.0], "clickable": True, "set_of_marks": True}
    assert overlay_som(obs["screenshot"], obs["extra_element_properties"]).shape == (48, 64, 3)
    obs, _, terminated, _, info = env.step("click('bad')")
    assert obs["last_action_error"] == "not_found: no element" and not terminated
    assert info["action_exec_stop"] == obs["elapsed_time"][0] > info["action_exec_start"] and info["task_info"] == {"success": False}
    obs, _, terminated, _, _ = env.step("send_msg_to_user('It is 42.')")
    assert terminated and obs["chat_messages"][-1]["message"] == "It is 42."
    assert [r["action"] for r in fake.named("Step")][-1] == "finish('It is 42.')"
    env.close()


def test_arguments_of_browsergym_are_taken(fake: FakeGym) -> None:
    names = pommel.register_tasks(fake.address)
    try:
        env = gymnasium.make(
            "browsergym/pommel.shop.buy-item", headless=True, slow_mo=0, viewport={"width": 64, "height": 48}, screenshot=False,
            action_mapping=HighLevelActionSet().to_python_code, wait_for_user_message=False, task_kwargs={}, message_ends=False,
        )  # fmt: skip
        assert "screenshot" not in env.reset(seed=1)[0]
        assert not env.step("send_msg_to_user('It is 42.')")[2]
        env.close()
    finally:
        for name in [*names[1:], *(n for n in list(gymnasium.registry) if n.startswith("browsergym/pommel."))]:
            del gymnasium.registry[name]
        pommel.register_envs()
    with pytest.raises(pommel.InvalidArgument, match="use_raw_page_output"):
        pommel.make(address=fake.address, browsergym=True, use_raw_page_output=True)


def test_many(fake: FakeGym) -> None:
    fake.size = (64, 48)
    envs = pommel.make_vec(2, "buy-item", fake.address, browsergym=True)
    obs, _ = envs.reset(seed=0)
    assert obs in envs.observation_space and obs["screenshot"].shape == (2, 48, 64, 3) and len(obs["axtree_object"]) == 2
    assert not any(envs.step(["noop()"] * 2)[2])
    envs.close()


def test_agent_of_browsergym_works_in_the_shop(server: pommel.Server) -> None:
    env = server.make("add-to-cart", browsergym=True)
    obs, _ = env.reset(seed=7)
    assert obs in env.observation_space and obs["screenshot"].std() > 1
    ax = flatten_axtree_to_str(obs["axtree_object"])
    assert re.findall(r"^\t*\[(\w+)\]", ax, re.M) == list(obs["extra_element_properties"])
    html = prune_html(flatten_dom_to_str(obs["dom_object"], obs["extra_element_properties"], filter_visible_only=True))
    assert "Search products" in html
    reward, info = browsergym_agent.run(env, 7)
    assert info["success"] and reward == pytest.approx(1.0)
    env.reset(seed=8)
    obs, reward, terminated, truncated, info = env.step("send_msg_to_user('I give up \u6f22 \U0001f600.')")
    assert terminated and not truncated and not info["success"]
    assert obs["chat_messages"][-1]["message"] == "I give up \u6f22 \U0001f600." and obs["last_action_error"] == ""
    env.close()
