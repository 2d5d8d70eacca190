"""Reads the page's text and elements back into trees: of accessibility nodes, and of DOM nodes.

The forms are those of the browser's debugging protocol, as tools for BrowserGym take them. They hold
what the observation holds: the nodes that a user can see, with their bids.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any

_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_LINE = re.compile(rf"(\t*)(?:\[([A-Za-z0-9]+)\] )?(\w+) ({_STRING})(?: value=({_STRING}))?(.*)", re.S)
_ATTRIBUTE = re.compile(rf", (\w+)(?:=({_STRING}|\[(?:{_STRING}|[^\]'\"])*\]|[^,]+))?")
_OPTION = re.compile(rf"({_STRING})( \(disabled\))?")

# Elements whose name is no text of theirs.
_VOID = frozenset(("input", "select", "textarea", "img", "iframe", "frame", "video", "audio", "svg", "canvas", "object"))
_ELEMENT, _TEXT, _DOCUMENT = 1, 3, 9


@dataclass
class Node:
    """One line of the text."""

    role: str
    name: str
    bid: str = ""
    value: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    tag: str = ""


def parse(text: str) -> Node:
    """Read the text of an observation."""
    root = Node("RootWebArea", "")
    path = [root]  # the node of each depth above the current line
    for number, line in enumerate(text.split("\n")):
        m = _LINE.fullmatch(line)
        if m is None:
            if line and not line.startswith("(page of "):
                root.children.append(Node("StaticText", line.strip()))
            continue
        node = Node(m[3], _literal(m[4]), m[2] or "", m[5] and _literal(m[5]))
        for key, value in _ATTRIBUTE.findall(m[6]):
            node.attributes[key] = _options(value) if value.startswith("[") else _literal(value) if value else True
        if number == 0 and node.role == root.role:
            root = node
            path = [root]
            continue
        depth = min(max(len(m[1]), 1), len(path))
        path[depth:] = [node]
        path[depth - 1].children.append(node)
        for label, disabled in node.attributes.pop("options", ()):
            chosen = {"selected": True} if label == node.value else {}
            node.children.append(Node("option", label, attributes=chosen | ({"disabled": True} if disabled else {}), tag="option"))
    return root


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _options(text: str) -> list[tuple[str, bool]]:
    return [(str(_literal(name)), bool(disabled)) for name, disabled in _OPTION.findall(text)]


def axtree(root: Node) -> dict[str, Any]:
    """Write accessibility nodes, the root first."""
    nodes: list[dict[str, Any]] = []

    def write(node: Node, parent: str) -> str:
        node_id = str(len(nodes) + 1)
        out: dict[str, Any] = {
            "nodeId": node_id,
            "ignored": False,
            "role": {"type": "role", "value": node.role},
            "name": {"type": "computedString", "value": node.name},
            "properties": [_property(k, v) for k, v in node.attributes.items()],
            "backendDOMNodeId": len(nodes) + 1,
            "childIds": [],
        }
        if node.value is not None:
            out["value"] = {"type": "string", "value": node.value}
        if node.bid:
            out["browsergym_id"] = node.bid
        if parent:
            out["parentId"] = parent
        nodes.append(out)
        out["childIds"] = [write(c, node_id) for c in node.children]
        return node_id

    write(root, "")
    return {"nodes": nodes}


def _property(name: str, value: Any) -> dict[str, Any]:
    kind = "booleanOrUndefined" if isinstance(value, bool) else "integer" if isinstance(value, int) else "token"
    return {"name": name, "value": {"type": kind, "value": value}}


class _Document:
    """The nodes of one document in columns, with their texts in a table that all documents share."""

    def __init__(self, strings: dict[str, int]) -> None:
        self.strings = strings
        self.parent: list[int] = []
        self.type: list[int] = []
        self.name: list[int] = []
        self.value: list[int] = []
        self.attributes: list[list[int]] = []
        self.clickable: list[int] = []
        self.frames: list[tuple[int, Node]] = []
        self.boxes: list[tuple[int, list[float]]] = []

    def text(self, s: str) -> int:
        return self.strings.setdefault(s, len(self.strings))

    def add(self, parent: int, kind: int, name: str, value: str = "", attributes: dict[str, str] | None = None) -> int:
        self.parent.append(parent)
        self.type.append(kind)
        self.name.append(self.text(name))
        self.value.append(self.text(value) if value else -1)
        self.attributes.append([self.text(s) for item in (attributes or {}).items() for s in item])
        return len(self.parent) - 1

    def to_json(self, documents: dict[int, int]) -> dict[str, Any]:
        ids = list(range(1, len(self.parent) + 1))
        frames = [(at, documents[id(node)]) for at, node in self.frames]
        nodes = {
            "parentIndex": self.parent, "nodeType": self.type, "nodeName": self.name, "nodeValue": self.value,
            "backendNodeId": ids, "attributes": self.attributes,
            "contentDocumentIndex": {"index": [f[0] for f in frames], "value": [f[1] for f in frames]},
            "isClickable": {"index": self.clickable},
        }  # fmt: skip
        boxes = [b for _, b in self.boxes]
        layout = {"nodeIndex": [at for at, _ in self.boxes], "bounds": boxes, "clientRects": boxes}
        return {"nodes": nodes, "layout": layout, "scrollOffsetX": 0, "scrollOffsetY": 0}


def dom(root: Node, title: str, elements: dict[str, dict[str, Any]], properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Write a DOM snapshot. Texts and attributes are what the observation knows of an element, not the page's source.

    Args:
        root: Of the page.
        title: Of the page.
        elements: By bid, for their tags.
        properties: By bid, as BrowserGym has them.
    """
    strings: dict[str, int] = {}
    documents: list[_Document] = []
    numbers: dict[int, int] = {}
    todo = [root]
    for node in todo:
        document = _Document(strings)
        numbers[id(node)] = len(documents)
        documents.append(document)
        top = document.add(document.add(-1, _DOCUMENT, "#document"), _ELEMENT, "HTML")
        if node is root:
            document.add(document.add(document.add(top, _ELEMENT, "HEAD"), _ELEMENT, "TITLE"), _TEXT, "#text", title)
        body = document.add(top, _ELEMENT, "BODY")
        for child in node.children:
            _write(document, body, child, elements, properties)
        todo += [frame for _, frame in document.frames]
    return {"documents": [d.to_json(numbers) for d in documents], "strings": list(strings)}


def _write(
    document: _Document, parent: int, node: Node, elements: dict[str, dict[str, Any]], properties: dict[str, dict[str, Any]]
) -> None:
    if node.role == "StaticText" and not node.bid:
        document.add(parent, _TEXT, "#text", node.name)
        return
    element = elements.get(node.bid, {})
    tag = node.tag or element.get("tag") or "div"
    named = bool(node.name) and (tag in _VOID or (bool(node.children) and node.role != "row"))
    attributes = _attributes(node, tag, named)
    p = properties.get(node.bid)
    if p is not None:
        attributes["browsergym_visibility_ratio"] = f"{p['visibility']:g}"
        attributes["browsergym_set_of_marks"] = "1" if p["set_of_marks"] else "0"
    at = document.add(parent, _ELEMENT, tag.upper(), "", attributes)
    if p is not None and p["bbox"] is not None:
        document.boxes.append((at, p["bbox"]))
    if p is not None and p["clickable"]:
        document.clickable.append(at)
    if node.name and not named:
        document.add(at, _TEXT, "#text", node.name)
    if tag in ("iframe", "frame"):
        document.frames.append((at, node))
        return
    for child in node.children:
        _write(document, at, child, elements, properties)


def _attributes(node: Node, tag: str, named: bool) -> dict[str, str]:
    out = {"bid": node.bid} if node.bid else {}
    if tag in ("div", "span", "li") and node.role not in ("generic", "listitem", "StaticText"):
        out["role"] = node.role
    if named:
        out["alt" if tag == "img" else "aria-label"] = node.name
    if node.value is not None:
        out["value"] = node.value
    for key, value in node.attributes.items():
        if value is True:
            out[key] = ""
        elif value is not False:
            out[key] = str(value)
    return out
