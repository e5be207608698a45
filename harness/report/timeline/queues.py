"""The cluster above the lanes of the job: each task in its queue with its pods, each node pool with its nodes."""

from collections.abc import Iterator, Sequence

from harness.lineage import Stay
from harness.report.cluster import ClusterView, Node, Pod, Pool, Queue
from harness.report.timeline.rows import pack
from harness.report.timeline.scale import Scale
from harness.report.timeline.shapes import CHARACTER_PX, Label, Mark, Shape, bar, text_width
from harness.report.wording import count, duration, moment

STAY_PX, POD_PX, NODE_PX = 13.0, 5.0, 5.0
"""Heights of a stay, of a pod and of a node; between rows of pods or nodes lies ``GAP_PX``."""

GAP_PX, LANE_GAP_PX, NOTE_PX = 1.5, 9.0, 12.0
PODS_GAP_PX = 4.0
"""Between the notes and the pods: letters reach below their line."""

QUEUES_MAX, POD_ROWS_MAX, NODE_ROWS_MAX, NOTE_ROWS_MAX = 6, 8, 6, 2
"""More make the picture longer than a screen; the tables have all of them."""

NOTE_CHARACTERS_MAX = 150

HOLDS_UP = ("checking", "deactivated")
"""States whose reason a reader asks for first."""

_TITLES = {
    "queued": "waits for quota",
    "backoff": "backs off before it is queued again",
    "checking": "quota reserved, a check is not ready",
    "admitted": "admitted",
    "evicting": "evicted, its pods are being stopped",
    "deactivated": "deactivated: nobody will try again",
    "finished": "finished",
}
_POD_TITLES = {
    "pending": "pending",
    "running": "running",
    "orphaned": "running by the API, its node gone or not ready,",
    "terminating": "terminating",
}
_WORDS = {"queued": "queued", "backoff": "backoff", "checking": "checking", "evicting": "evicted", "deactivated": "deactivated"}


def draw_cluster(view: ClusterView, scale: Scale, top: float, end_s: float) -> tuple[list[Shape], float]:
    """All of it, and where what is below it begins."""
    shapes: list[Shape] = []
    y = top
    for queue in view.queues[:QUEUES_MAX]:
        drawn, y = _draw_queue(queue, scale, y, end_s, is_only=len(view.queues) == 1)
        shapes += drawn
    for pool in view.pools:
        drawn, y = _draw_pool(pool, scale, y, end_s)
        shapes += drawn
    return shapes, y


def _draw_queue(queue: Queue, scale: Scale, y: float, end_s: float, *, is_only: bool) -> tuple[list[Shape], float]:
    label = "queue" if is_only else f"task {queue.task} queue"
    shapes: list[Shape] = [Label(kind="name", x=scale.left - 10, y=y + 10, text=label, anchor="end")]
    for stay in queue.stays:
        shapes += _draw_stay(stay, scale, y, end_s)
    y += STAY_PX
    notes, y = _draw_notes(queue.stays, scale, y, end_s)
    shapes += notes
    pods, y = _draw_pods(queue.pods, scale, y + PODS_GAP_PX, end_s)
    shapes += pods
    return shapes, y + LANE_GAP_PX


def _draw_stay(stay: Stay, scale: Scale, y: float, end_s: float) -> Iterator[Shape]:
    until_s = end_s if stay.end_s is None else stay.end_s
    if not scale.holds(stay.begin_s, until_s):
        return
    said = f": {stay.notes[-1][1]}" if stay.notes else ""
    flavor = f" to {stay.flavor}" if stay.state == "admitted" and stay.flavor else f" for {stay.flavor}" if stay.flavor else ""
    title = f"{_TITLES[stay.state]}{flavor} from {moment(stay.begin_s)} s, for {duration(until_s - stay.begin_s)}{said}"
    begin, end = scale.x(stay.begin_s), scale.x(until_s)
    if stay.state == "finished":
        yield Mark(kind="finished", x=begin + 5, y=y + STAY_PX / 2, title=title)
        yield Label(kind="mark-label", x=begin + 13, y=y + 10, text="finished")
        return
    kind = "provisioned" if stay.state == "admitted" and stay.has_checks else stay.state
    yield bar(f"stay {kind}", begin, end, y=y, height=STAY_PX, title=title)
    word = stay.flavor if stay.state == "admitted" else _WORDS[stay.state]
    if word and text_width(word) + 6 < end - begin:
        yield Label(kind="stay-label", x=begin + 4, y=y + 10, text=word)


def _draw_notes(stays: Sequence[Stay], scale: Scale, y: float, end_s: float) -> tuple[list[Shape], float]:
    """What the cluster said, below the stays: what holds a task up first, then the rest; texts that find no room are in the titles.

    What it says again and again, as at each of several evictions, is written once.
    """
    said = [(stay.state not in HOLDS_UP, note_s, text) for stay in stays if stay.state != "finished" for note_s, text in stay.notes[-1:]]
    told = {text: (is_minor, note_s, text) for is_minor, note_s, text in sorted(said, reverse=True)}.values()
    rows: list[list[Label]] = [[] for _ in range(NOTE_ROWS_MAX)]
    for _, note_s, text in sorted(told):
        if scale.holds(note_s, note_s) and note_s <= end_s:
            label = _note_label(scale.x(note_s), text, scale)
            row = next((row for row in rows if not any(_touch(label, other) for other in row)), None)
            if row is not None:
                row.append(label)
    used = [row for row in rows if row]
    shapes: list[Shape] = [
        Label(kind="quiet", x=label.x, y=y + index * NOTE_PX + 10, text=label.text) for index, row in enumerate(used) for label in row
    ]
    return shapes, y + len(used) * NOTE_PX


def _touch(one: Label, other: Label) -> bool:
    return one.x < other.x + text_width(other.text) + 8 and other.x < one.x + text_width(one.text) + 8


def _note_label(x: float, text: str, scale: Scale) -> Label:
    """A text cut to what there is room for; one that begins far right is moved left."""
    text = text if len(text) <= NOTE_CHARACTERS_MAX else f"{text[: NOTE_CHARACTERS_MAX - 1]}…"
    room = scale.right - scale.left
    text = text if text_width(text) <= room else f"{text[: int(room / CHARACTER_PX) - 1]}…"
    return Label(kind="quiet", x=max(scale.left, min(x, scale.right + 60 - text_width(text))), y=0.0, text=text)


def _draw_pods(pods: Sequence[Pod], scale: Scale, y: float, end_s: float) -> tuple[list[Shape], float]:
    """Hosts by rank, those of one rank in one row unless they overlap; then head and submitter."""
    ordered = sorted(pods, key=lambda pod: (pod.role != "host", pod.role, pod.rank))
    groups: dict[tuple[str, int], list[Pod]] = {}
    for pod in ordered:
        groups.setdefault((pod.role, pod.rank), []).append(pod)
    shapes: list[Shape] = []
    row = 0
    for mine in groups.values():
        rows = pack(_reach(pod, end_s) for pod in mine)
        for pod, offset in zip(mine, rows, strict=True):
            if row + offset < POD_ROWS_MAX:
                shapes += _draw_pod(pod, scale, y + (row + offset) * (POD_PX + GAP_PX), end_s)
        row += max(rows, default=-1) + 1
    shown = min(row, POD_ROWS_MAX)
    if shown:
        hidden = f" (+{row - shown})" if row > shown else ""
        text = f"{count(len(pods), 'pod')}{hidden}"
        shapes.append(Label(kind="quiet", x=scale.left - 10, y=y + max(shown * (POD_PX + GAP_PX) / 2 + 3, 8), text=text, anchor="end"))
    return shapes, y + max(shown * (POD_PX + GAP_PX), 10.0 if shown else 0.0)


def _reach(pod: Pod, end_s: float) -> tuple[float, float]:
    if not pod.spells:
        return 0.0, 0.0
    last_s = pod.spells[-1].end_s
    return pod.spells[0].begin_s, end_s if last_s is None else last_s


def _draw_pod(pod: Pod, scale: Scale, y: float, end_s: float) -> Iterator[Shape]:
    who = f"{pod.role} {pod.rank}" if pod.rank >= 0 else pod.role
    for spell in pod.spells:
        until_s = end_s if spell.end_s is None else spell.end_s
        if scale.holds(spell.begin_s, until_s):
            end = f"; {pod.end}" if pod.end and spell is pod.spells[-1] else ""
            during = f"from {moment(spell.begin_s)} s to {moment(until_s)} s"
            title = f"{who}, pod {pod.name} on {pod.place}: {_POD_TITLES[spell.state]} {during}{end}"
            yield bar(f"pod {spell.state}", scale.x(spell.begin_s), scale.x(until_s), y=y, height=POD_PX, title=title)


def _draw_pool(pool: Pool, scale: Scale, y: float, end_s: float) -> tuple[list[Shape], float]:
    shapes: list[Shape] = []
    scalings, rows = _draw_scalings(pool, scale, y)
    shapes += scalings
    y += rows * NOTE_PX
    shown = pool.nodes[:NODE_ROWS_MAX]
    for row, node in enumerate(shown):
        shapes += _draw_node(node, pool.name, scale, y + row * (NODE_PX + GAP_PX), end_s)
    height = max(len(shown) * (NODE_PX + GAP_PX), 10.0)
    hidden = f" (+{len(pool.nodes) - len(shown)})" if len(pool.nodes) > len(shown) else ""
    shapes.append(Label(kind="quiet", x=scale.left - 10, y=y + height / 2 + 3, text=f"{pool.name}{hidden}", anchor="end"))
    return shapes, y + height + LANE_GAP_PX - 2


def _draw_node(node: Node, pool: str, scale: Scale, y: float, end_s: float) -> Iterator[Shape]:
    for spell in node.spells:
        until_s = end_s if spell.end_s is None else spell.end_s
        if scale.holds(spell.begin_s, until_s):
            title = f"node {node.name} of {pool}: {spell.state} from {moment(spell.begin_s)} s to {moment(until_s)} s"
            yield bar(f"node {spell.state}", scale.x(spell.begin_s), scale.x(until_s), y=y, height=NODE_PX, title=title)


def _draw_scalings(pool: Pool, scale: Scale, y: float) -> tuple[list[Shape], int]:
    """What the autoscaler did and could not do, above the nodes."""
    told = [(event, event.error or count(event.nodes, "node")) for event in pool.scalings]
    inside = [(event, text) for event, text in told if scale.holds(event.t_s, event.t_s)]
    places = [min(scale.x(event.t_s), scale.right + 60 - text_width(text)) for event, text in inside]
    rows = pack((x, x + text_width(text) + 10) for x, (_, text) in zip(places, inside, strict=True))
    shapes: list[Shape] = []
    for x, row, (event, text) in zip(places, rows, inside, strict=True):
        if row < NOTE_ROWS_MAX:
            kind = "fault" if event.error else "word-label"
            shapes.append(Mark(kind="word", x=scale.x(event.t_s), y=y + row * NOTE_PX + 7, title=f"{event.why} at {moment(event.t_s)} s"))
            shapes.append(Label(kind=kind, x=x + 5, y=y + row * NOTE_PX + 10, text=text))
    return shapes, min(max(rows, default=-1) + 1, NOTE_ROWS_MAX)
