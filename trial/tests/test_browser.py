"""The page in a real browser, at three sizes. With OMG_CMDP_SCREENSHOTS=FOLDER it leaves pictures to look at."""

import contextlib
import os
import shutil
import socket
import threading
from pathlib import Path

import pytest

from omg_trial.service import Service
from omg_trial.tokens import Tokens
from omg_trial.web.app import make_app
from trial.tests.test_views import HOSTILE, crowd
from trial.tests.test_watching import Scene, contradiction, no_rewards, other_actions
from trial.tests.trials import TEXT

pytestmark = pytest.mark.slow
SIZES = {"telephone": (390, 800), "tablet": (820, 1100), "desk": (1280, 900)}
PAGES = ("Overview", "People", "Decisions", "Outcomes", "Checks and incidents", "Model")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
CHROMIUM = shutil.which("chromium")


@contextlib.contextmanager
def served(scene, folder):
    """Yield the address of the page, and tokens of an analyst, an administrator and a blinded reader."""
    import uvicorn

    service, tokens = Service(scene.desk), Tokens(folder / "tokens")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(make_app(service, tokens), log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            roles = [tokens.add(role, role) for role in ("analyst", "administrator", "blinded")]
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", *roles
        finally:
            server.should_exit = True
            thread.join()
            service.end()


def trial_with_troubles():
    scene = crowd(Scene(text=TEXT.replace('"adherence"', '"<b>adherence</b>"')), people=14, days=46, lives=HOSTILE)
    scene.process.refuse("503")
    scene.tick()
    for trouble in (other_actions, contradiction):
        trouble(scene)
        scene.tick()
        for episode in list(scene.desk.state.open):
            scene.desk.call("close", {"episode": episode})
    no_rewards(scene)
    scene.tick()
    scene.desk.call("open", {"person": "q0", "context": {"age": 40, "lives": HOSTILE}})
    return scene


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(trial_with_troubles(), tmp_path_factory.mktemp("page")) as made:
        yield made


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.fixture(params=SIZES)
def page(request, browser):
    width, height = SIZES[request.param]
    made = browser.new_page(viewport={"width": width, "height": height})
    made.set_default_timeout(20_000)
    made.size, made.faults, made.asked = request.param, [], []
    made.on("pageerror", lambda error: made.faults.append(str(error)))
    made.on("console", lambda line: made.faults.append(line.text) if line.type == "error" else None)
    made.on("dialog", lambda dialog: made.faults.append(dialog.message))
    made.on("request", lambda request: made.asked.append(request.url))
    yield made
    made.close()


def enter(page, address):
    url, token = address[0], address[1]
    page.goto(url)
    page.keyboard.type(token)  # the field has the focus
    page.keyboard.press("Enter")
    page.wait_for_selector("#chart-people svg")


def turn_to(page, name):
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_selector(f'nav a[aria-current]:text-is("{name}")')
    assert page.title() == f"{name} · <b>adherence</b>"


def picture(page, name):
    if folder := os.environ.get("OMG_CMDP_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}-{page.size}.png", full_page=True)


def fits(page):
    """Whether nothing is wider than the screen."""
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_pages_show_the_trial(page, address):
    enter(page, address)
    assert page.inner_text("h1") == "<b>adherence</b>"
    assert page.locator("#attention .red, #attention .yellow").count() >= 2
    rows = {"under-way": 2, "overdue": 13, "by-action": 1}  # 8 + 1 + 4 of the troubles
    charts = {"Overview": "people", "People": "retention", "Decisions": "chances", "Outcomes": "rewards"}
    for name in PAGES:
        turn_to(page, name)
        assert page.locator("section.page:visible").count() == 1
        assert fits(page)
        picture(page, name.split()[0].lower())
        if name in charts:
            assert page.locator(f"#chart-{charts[name]} svg[role=img]").bounding_box()["width"] > 200
    for place, count in rows.items():
        assert page.locator(f"#{place} tbody tr").count() == count
    assert page.locator("#chart-chances polyline").count() >= 3
    assert page.locator("#versions tbody tr").count() >= 20
    assert page.locator("#incidents tbody tr").count() >= 2
    turn_to(page, "Outcomes")
    page.get_by_label("Split by").select_option("lives")
    assert page.locator("#by-action tbody tr").count() == 3
    assert [asked for asked in page.asked if not asked.startswith((address[0], "data:"))] == []
    assert page.faults == []


def test_texts_are_texts(page, address):
    """A context that is HTML is shown, and never run."""
    enter(page, address)
    turn_to(page, "People")
    page.get_by_role("button", name="q0").first.click()
    page.wait_for_selector("#person-history details")
    assert page.locator("#person-history svg .box").count() > 100  # a box for each decision
    assert HOSTILE in page.inner_text("#person-history")
    assert page.locator("img").count() == 0
    assert "pwned" not in page.title()
    assert fits(page)
    picture(page, "person")
    assert page.faults == []


def test_the_policy_of_a_context(page, address):
    enter(page, address)
    turn_to(page, "Model")
    page.get_by_label("age (20").fill("70")
    page.get_by_label("lives").select_option("alone")
    page.get_by_role("button", name="Plan").click()
    page.wait_for_selector("#policy-table td.chance")
    rows = page.locator("#policy-table tbody tr").all_inner_texts()
    assert len(rows) == 8  # four steps, two states
    assert all(abs(sum(map(float, row.split("\t")[2:])) - 1.0) < 0.002 for row in rows)
    assert fits(page)
    picture(page, "policy")
    page.get_by_label("age (20").fill("")
    page.get_by_label("lives").select_option("unknown")
    page.get_by_role("button", name="Plan").click()
    page.wait_for_selector("#policy-table .red")  # why not


def test_an_incident_is_acknowledged_with_a_note(page, address):
    url, analyst, boss, _ = address
    enter(page, (url, boss))
    turn_to(page, "Checks and incidents")
    forms = page.locator("#incidents form.note")
    before = forms.count()
    forms.first.get_by_role("textbox").fill("<i>called the app's team</i>")
    forms.first.get_by_role("button").click()
    forms.nth(before - 1).wait_for(state="detached")
    assert "<i>called the app's team</i>" in page.inner_text("#incidents")
    page.get_by_role("button", name="Sign out").click()
    enter(page, (url, analyst))
    turn_to(page, "Checks and incidents")
    forms.first.get_by_role("textbox").fill("no")
    forms.first.get_by_role("button").click()
    page.wait_for_selector("#incidents form.note .red")  # it is not the analyst's to say
    assert forms.count() == before - 1


def test_a_blinded_reader_sees_no_action(page, address):
    enter(page, (address[0], address[3]))
    assert page.is_visible("#blind")
    for name in PAGES:
        turn_to(page, name)
        if name == "People":
            page.get_by_role("button", name="q0").first.click()
            page.wait_for_selector("#person-history details")
        assert fits(page)
        picture(page, f"blinded-{name.split()[0].lower()}")
    assert "reminder" not in page.content()
    assert page.locator("section.open:visible").count() == 0
    assert page.faults == []


def test_only_the_keyboard(page, address):
    """Whatever can be clicked can be reached, and shows that it has the focus."""
    enter(page, address)
    turn_to(page, "People")
    wanted = page.evaluate(f"[...document.querySelectorAll('{ACTIVE}')].filter(e => e.checkVisibility()).length")
    page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(wanted + 30):
        page.keyboard.press("Tab")
        place = page.evaluate(FOCUS)
        if place:
            reached.add(place[0])
            assert place[1] != "none"
    assert len(reached) == wanted


def test_a_wrong_token_is_said_so_and_forgotten(page, address):
    page.goto(address[0])
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("#notice:not(:empty)")
    assert "token" in page.inner_text("#notice")
    assert page.evaluate("sessionStorage.length") == 0
    picture(page, "token")
    enter(page, address)
    page.get_by_role("button", name="Sign out").click()
    assert page.evaluate("sessionStorage.length") == 0
    assert page.locator("section.page:visible").count() == 0
    assert "q0" not in page.content()


def test_everybody_can_read_it(page, address):
    """By the rules of axe-core, in light and in dark; texts of charts, which it leaves out, have 4.5 to 1 as well."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page.goto(address[0])
    assert problems(axe, page) == []
    enter(page, address)
    turn_to(page, "People")
    page.get_by_role("button", name="q0").first.click()
    page.wait_for_selector("#person-history details")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for name in PAGES:
            turn_to(page, name)
            picture(page, f"{scheme}-{name.split()[0].lower()}")
            assert problems(axe, page) == [], (scheme, name)
            assert page.evaluate(CONTRAST) == []


def problems(axe, page):
    """Return the rules of axe-core that the page breaks, and where."""
    found = axe.Axe().run(page).response["violations"]
    return [(each["id"], [node["html"][:80] for node in each["nodes"]]) for each in found]


ACTIVE = "a, button, input, select, summary"
FOCUS = f"""
(() => {{
  const e = document.activeElement;
  if (!e.matches("{ACTIVE}")) return null;
  return [[...document.querySelectorAll("*")].indexOf(e), getComputedStyle(e).outlineStyle];
}})()
"""
CONTRAST = """
(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (e) => {
    const found = rgb(getComputedStyle(e).backgroundColor);
    return found[3] === 0 ? (e.parentElement ? ground(e.parentElement) : [255, 255, 255]) : found;
  };
  const poor = [];
  for (const e of document.querySelectorAll("body *")) {
    const says = [...e.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!says || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const text = light(rgb(e.namespaceURI.includes("svg") ? style.fill : style.color)), behind = light(ground(e));
    const ratio = (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
    if (ratio < 4.5) poor.push(`${e.tagName} ${ratio}: ${e.textContent.slice(0, 30)}`);
  }
  return poor;
})()
"""
