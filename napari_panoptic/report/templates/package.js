"use strict";
// A review without the program: shows the items, keeps the answers in the browser, and saves
// them as a file with a digest. Nothing is fetched and nothing is sent.
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const SIDES = ["annotation", "prediction"];
  const QUESTIONS = { annotation: "annotated nucleus", prediction: "predicted nucleus" };
  const STORAGE_KEY = `napari-panoptic ${data.package}`;
  const answers = new Map(); // item -> {verdict, count, note, given_at}
  const shown = { annotation: true, prediction: true };
  let place = 0; // of the question
  let panel = 0; // of the pair that is judged
  let view = [0, 0, 1]; // x, y and width of the part that is shown
  let savedAt = "";
  let isKept = true; // whether the browser stores the progress

  // --- answers ---------------------------------------------------------------------------------

  const NOTHING = { verdict: "", count: null, note: "", given_at: "" };
  const numbers = new Map(data.items.map((item, number) => [item.item, number]));
  const panels = () => data.questions[place];
  const current = () => data.items[panels()[panel]];
  const isTile = (item) => item.side === "";
  const answerOf = (item) => answers.get(item.item) ?? NOTHING;
  const isAnswered = (item) => answerOf(item).verdict !== "" || answerOf(item).count !== null;
  const isOpen = (question) => question.some((number) => !isAnswered(data.items[number]));
  const given = () => data.items.filter(isAnswered);

  function answer(change) {
    const item = current();
    answers.set(item.item, { ...answerOf(item), ...change, given_at: new Date().toISOString() });
    keep();
  }

  function isAnswer(value) {
    const verdicts = ["", ...data.verdicts.map((each) => each.verdict)];
    return (
      value !== null && typeof value === "object" && verdicts.includes(value.verdict) &&
      (value.count === null ||
        (Number.isInteger(value.count) && value.count >= 0 && value.count <= data.most)) &&
      typeof value.note === "string" && !Number.isNaN(Date.parse(value.given_at))
    );
  }

  // Take answers from elsewhere, where they are newer; return their number.
  function take(pairs) {
    let count = 0;
    for (const [item, other] of pairs) {
      const own = answers.get(item);
      if (!numbers.has(item) || !isAnswer(other)) continue;
      if (own && Date.parse(own.given_at) >= Date.parse(other.given_at)) continue;
      const { verdict, count: counted, note, given_at } = other;
      answers.set(item, { verdict, count: counted, note, given_at });
      count += 1;
    }
    return count;
  }

  // --- progress in the browser -----------------------------------------------------------------

  function stored() {
    try {
      return JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}") ?? {};
    } catch {
      return {}; // no storage here, or damaged
    }
  }

  function keep() {
    const known = stored();
    // Another tab may have answered meanwhile.
    if (Array.isArray(known.answers)) take(known.answers.filter(Array.isArray));
    const reviewer = byId("reviewer").value;
    try {
      const state = { answers: [...answers], place, reviewer, savedAt };
      localStorage.setItem(STORAGE_KEY, JSON.stringify(state));
      isKept = true;
    } catch {
      isKept = false;
    }
  }

  function restore() {
    const known = stored();
    if (Array.isArray(known.answers)) take(known.answers.filter(Array.isArray));
    if (Number.isInteger(known.place) && data.questions[known.place]) place = known.place;
    if (typeof known.savedAt === "string") savedAt = known.savedAt;
    byId("reviewer").value = typeof known.reviewer === "string" ? known.reviewer : data.reviewer;
    keep();
    if (!isKept) {
      say("This browser stores no progress. Save your verdicts before you close the page.", true);
    } else if (given().length) {
      say(`Welcome back. Your answers are still here: ${given().length} of ${data.items.length}.`);
    }
  }

  const unsaved = () => given().filter((item) => answerOf(item).given_at > savedAt).length;

  // --- digest ----------------------------------------------------------------------------------

  // SHA-256 as in FIPS 180-4; browsers offer theirs only to pages from secure addresses.
  function sha256(bytes) {
    const primes = [];
    for (let n = 2; primes.length < 64; n += 1) {
      if (primes.every((prime) => n % prime)) primes.push(n);
    }
    const fraction = (value) => ((value - Math.floor(value)) * 2 ** 32) >>> 0;
    const constants = primes.map((prime) => fraction(Math.cbrt(prime)));
    const hash = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
    const padded = new Uint8Array(((bytes.length + 8) >> 6 << 6) + 64);
    padded.set(bytes);
    padded[bytes.length] = 0x80;
    const words = new DataView(padded.buffer);
    words.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
    words.setUint32(padded.length - 4, (bytes.length << 3) >>> 0);
    const turn = (value, by) => (value >>> by) | (value << (32 - by));
    const schedule = new Uint32Array(64);
    for (let start = 0; start < padded.length; start += 64) {
      for (let i = 0; i < 16; i += 1) schedule[i] = words.getUint32(start + 4 * i);
      for (let i = 16; i < 64; i += 1) {
        const early = schedule[i - 15], late = schedule[i - 2];
        const first = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
        const second = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
        schedule[i] = schedule[i - 16] + first + schedule[i - 7] + second;
      }
      let [a, b, c, d, e, f, g, h] = hash;
      for (let i = 0; i < 64; i += 1) {
        const choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
        const mixed = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
        const one = (h + mixed + choice + constants[i] + schedule[i]) | 0;
        const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority) | 0;
        [a, b, c, d, e, f, g, h] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
      }
      [a, b, c, d, e, f, g, h].forEach((value, i) => { hash[i] = (hash[i] + value) >>> 0; });
    }
    return hash.map((value) => value.toString(16).padStart(8, "0")).join("");
  }

  // Each text is preceded by its length in bytes, so that no two lists give the same bytes.
  function digestOf(file) {
    const encoder = new TextEncoder();
    const parts = [
      file.format, String(file.version), file.package, file.items, file.reviewer, file.saved_at,
      ...file.verdicts.flatMap((line) => [
        line.item, line.verdict, line.count === null ? "" : String(line.count), line.note,
        line.given_at,
      ]),
    ];
    const pieces = parts.flatMap((part) => {
      const content = encoder.encode(part);
      return [encoder.encode(`${content.length}:`), content];
    });
    const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let end = 0;
    for (const piece of pieces) {
      bytes.set(piece, end);
      end += piece.length;
    }
    return `sha256:${sha256(bytes)}`;
  }

  // --- files -----------------------------------------------------------------------------------

  // Replaces halves of characters, which no file can hold.
  const whole = (text) => new TextDecoder().decode(new TextEncoder().encode(text));

  function save() {
    const reviewer = whole(byId("reviewer").value).trim();
    if (!reviewer) {
      say("Enter your name, then save again.", true);
      byId("reviewer").focus();
      return;
    }
    const answered = given();
    if (!answered.length) {
      say("There is no verdict to save yet.", true);
      return;
    }
    const now = new Date().toISOString();
    const verdicts = answered.map((item) => {
      const { verdict, count, note, given_at } = answerOf(item);
      return { item: item.item, verdict, count, note, given_at };
    });
    const file = {
      format: data.format, version: data.version, package: data.package, items: data.sealed,
      reviewer, saved_at: now, verdicts,
    };
    file.digest = digestOf(file);
    const link = document.createElement("a");
    const blob = new Blob([JSON.stringify(file, null, 1)], { type: "application/json" });
    const name = reviewer.normalize("NFKD").replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "");
    link.href = URL.createObjectURL(blob);
    link.download = `verdicts-${data.package.slice(0, 8)}-${name || "reviewer"}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    savedAt = now;
    keep();
    const lost = data.items.filter((item) => answerOf(item).note && !isAnswered(item)).length;
    const left = lost ? ` Notes without a verdict were left out: ${lost}.` : "";
    show();
    say(`Saved ${answered.length} verdicts as ${link.download}. Send this file back.${left}`);
  }

  async function load(source) {
    let file;
    try {
      file = JSON.parse(await source.text());
      if (digestOf(file) !== file.digest) throw new Error("it was altered or damaged");
      if (file.package !== data.package) throw new Error("it belongs to another package");
    } catch (error) {
      say(`${source.name} was not loaded: ${error.message}.`, true);
      return;
    }
    const count = take(file.verdicts.map((line) => [line.item, line]));
    if (!byId("reviewer").value) byId("reviewer").value = file.reviewer;
    keep();
    show();
    say(`Loaded ${count} verdicts from ${source.name}; newer ones on this page were kept.`);
  }

  // --- pictures --------------------------------------------------------------------------------

  function drawing(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  function element(tag, attributes, ...children) {
    const made = Object.assign(document.createElement(tag), attributes);
    made.append(...children);
    return made;
  }

  // In halves of a pixel: to the right, down to the right, down and so on, clockwise.
  const WAYS = {
    a: [2, 0], b: [1, 1], c: [0, 2], d: [-1, 1], e: [-2, 0], f: [-1, -1], g: [0, -2], h: [1, -1],
  };

  // Returns a path of SVG for closed lines: where each begins, and its steps.
  function pathOf(written) {
    return written.replaceAll(/(-?\d+) (-?\d+)([a-h\d]*);/g, (_, startX, startY, steps) => {
      const parts = steps.matchAll(/([a-h])(\d*)/g);
      const line = Array.from(parts, ([, way, length]) => {
        const [x, y] = WAYS[way].map((step) => (step * (length || 1)) / 2);
        return `l${x} ${y}`;
      });
      return `M${startX / 2} ${startY / 2}${line.join("")}z`;
    });
  }

  // One path for the objects whose shorter side is of the same length, in px of the image.
  function lines(item, kind, side, isCasing) {
    const wanted = data.lines.widths[side] +
      (kind === "concerned" && side === item.side ? data.lines.more : 0);
    const stroke = isCasing ? "#fff" : data.colours[side];
    const paths = item.paths[side][kind].map(([shorter, written]) => {
      const path = drawing("path", { class: isCasing ? "casing" : "line", d: pathOf(written), stroke });
      Object.assign(path.dataset, { shorter, wanted });
      return path;
    });
    return drawing("g", { class: side }, ...paths);
  }

  // What is beside the object lies below it, and all casings lie below all lines.
  function outlines(item) {
    const sides = SIDES.filter((side) => item.paths[side]);
    return ["beside", "concerned"].map((kind) => drawing(
      "g", { class: kind },
      ...[true, false].flatMap((isCasing) => sides.map((side) => lines(item, kind, side, isCasing))),
    ));
  }

  // Lines have the same width at every zoom, but are no wider than a share of the objects' shorter sides.
  function adjustLines(picture) {
    const scale = picture.getBoundingClientRect().width / view[2];
    for (const path of picture.querySelectorAll("path")) {
      const most = data.lines.share * scale * path.dataset.shorter;
      const width = Math.min(path.dataset.wanted, most);
      const casing = path.classList.contains("casing") ? Math.min(data.lines.casing, width / 2) : 0;
      path.style.strokeWidth = `${width + 2 * casing}px`;
    }
  }

  function square([x, y, width]) {
    const box = { x, y, width, height: width };
    return [drawing("rect", { class: "under", ...box }), drawing("rect", { class: "over", ...box })];
  }

  function figure(number, at) {
    const item = data.items[number];
    const href = `data:image/jpeg;base64,${data.pictures[item.picture]}`;
    const size = { width: item.field, height: item.field, preserveAspectRatio: "none" };
    const name = panels().length > 1 ? "AB"[at] : "";
    const picture = drawing(
      "svg", { role: "img", class: isTile(item) ? "tile" : "", "aria-label": `Picture ${name || item.item}` },
      drawing("image", { href, ...size }),
      ...outlines(item),
      ...(isTile(item) ? square(item.close) : []),
    );
    const caption = element("figcaption", {});
    if (name) {
      const button = element("button", { textContent: `Judge ${name}` });
      button.setAttribute("aria-pressed", String(at === panel));
      button.addEventListener("click", () => select(at));
      const given = element("strong", { className: "given" });
      caption.append(element("div", { className: "judge" }, button, given));
    }
    for (const [title, text] of item.facts) {
      caption.append(element("span", {}, `${title}: `, element("strong", { textContent: text })));
    }
    const made = element("figure", { className: name ? "pair" : "" }, picture, caption);
    follow(picture, at);
    return made;
  }

  function look([x, y, width]) {
    const { field } = current();
    const size = Math.min(Math.max(width, 16), 1.5 * field);
    const spare = 0.9 * size; // some of the picture stays in sight
    const within = (value) => Math.min(Math.max(value, spare - size), field - spare);
    const middle = (field - size) / 2;
    view = size >= field ? [middle, middle, size] : [within(x), within(y), size];
    for (const picture of document.querySelectorAll("figure > svg")) {
      picture.setAttribute("viewBox", `${view[0]} ${view[1]} ${view[2]} ${view[2]}`);
      adjustLines(picture);
    }
    const um = current().mpp ? ` (${(view[2] * current().mpp).toFixed(0)} µm)` : "";
    byId("scale").textContent = `Width shown: ${Math.round(view[2])} px${um}`;
  }

  function zoom(factor, [x, y] = [view[0] + view[2] / 2, view[1] + view[2] / 2]) {
    const width = Math.min(Math.max(view[2] * factor, 16), 1.5 * current().field);
    const by = width / view[2];
    look([x - (x - view[0]) * by, y - (y - view[1]) * by, width]);
  }

  const move = (dx, dy) => look([view[0] + dx * view[2], view[1] + dy * view[2], view[2]]);

  // Drag to move, pinch or turn the wheel to zoom.
  function follow(picture, at) {
    const fingers = new Map();
    const placeOf = ([x, y]) => {
      const box = picture.getBoundingClientRect();
      const scale = view[2] / box.width;
      return [view[0] + (x - box.left) * scale, view[1] + (y - box.top) * scale];
    };
    const middle = (points) => [0, 1].map((k) => points.reduce((s, p) => s + p[k], 0) / points.length);
    const spread = ([p, q]) => Math.hypot(p[0] - q[0], p[1] - q[1]);
    const release = (event) => fingers.delete(event.pointerId);
    picture.addEventListener("pointerdown", (event) => {
      picture.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      if (at !== panel) select(at);
    });
    picture.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      const before = [...fingers.values()];
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      const after = [...fingers.values()];
      const from = placeOf(middle(before)), to = placeOf(middle(after));
      look([view[0] + from[0] - to[0], view[1] + from[1] - to[1], view[2]]);
      if (after.length === 2 && spread(after) > 0) {
        zoom(spread(before) / spread(after), placeOf(middle(after)));
      }
    });
    picture.addEventListener("pointerup", release);
    picture.addEventListener("pointercancel", release);
    picture.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, placeOf([event.clientX, event.clientY]));
    }, { passive: false });
    picture.addEventListener("dblclick", () => look([0, 0, current().field]));
  }

  // --- the page --------------------------------------------------------------------------------

  function say(text, isWarning = false) {
    byId("notice").textContent = text;
    byId("notice").className = isWarning ? "warning" : "";
  }

  // Show another question; `show` shows changes to it.
  function go(to, at = 0) {
    if (!data.questions[to]) return;
    place = to;
    panel = at;
    keep();
    byId("panels").replaceChildren(...panels().map(figure));
    const [x, y, width] = current().close;
    const room = isTile(current()) ? width / 4 : 0;
    look([x - room, y - room, width + 2 * room]);
    show();
  }

  function select(at) {
    if (!(at in panels())) return;
    panel = at;
    show();
  }

  function show() {
    const item = current(), own = answerOf(item);
    const isPair = panels().length > 1;
    byId("place").textContent = `${place + 1} of ${data.questions.length}`;
    byId("previous").disabled = place === 0;
    byId("next").disabled = place === data.questions.length - 1;
    byId("question").textContent = isTile(item)
      ? "How many nuclei with their centre in the square have no outline?"
      : `Who is right about the ${QUESTIONS[item.side]}${isPair ? ` in ${"AB"[panel]}` : ""}?`;
    byId("verdicts").hidden = isTile(item);
    byId("counter").hidden = !isTile(item);
    for (const button of byId("verdicts").children) {
      button.setAttribute("aria-pressed", String(button.value === own.verdict));
    }
    byId("unclear").setAttribute("aria-pressed", String(own.verdict === "cannot-tell"));
    byId("count").value = own.count ?? "";
    byId("clear").disabled = !isAnswered(item);
    byId("note").value = own.note;
    document.querySelectorAll("figure").forEach((figure, at) => {
      figure.classList.toggle("current", isPair && at === panel);
      figure.querySelector("figcaption button")?.setAttribute("aria-pressed", String(at === panel));
      const given = figure.querySelector(".given");
      if (given) given.textContent = wordsOf(answerOf(data.items[panels()[at]]).verdict);
    });
    for (const side of SIDES) {
      byId(side).setAttribute("aria-pressed", String(shown[side]));
      byId(side).disabled = !panels().some((number) => data.items[number].paths[side]);
      for (const group of document.querySelectorAll(`figure g.${side}`)) {
        group.toggleAttribute("display", false);
        if (!shown[side]) group.setAttribute("display", "none");
      }
    }
    const done = given().length, waiting = unsaved();
    byId("progress").max = data.items.length;
    byId("progress").value = done;
    const since = waiting ? `, ${waiting} not saved` : "";
    byId("done").textContent = `${done} of ${data.items.length} answered${since}`;
  }

  function wordsOf(verdict) {
    return data.verdicts.find((each) => each.verdict === verdict)?.words ?? "";
  }

  // Go to what is open next: the other picture of a pair, then later questions, then earlier ones.
  function goOn() {
    const count = data.questions.length;
    const other = panels().findIndex((number) => !isAnswered(data.items[number]));
    if (other >= 0 && isAnswered(current())) {
      select(other);
      return;
    }
    for (let step = 1; step < count; step += 1) {
      const at = (place + step) % count;
      const question = data.questions[at];
      if (isOpen(question)) {
        go(at, question.findIndex((number) => !isAnswered(data.items[number])));
        return;
      }
    }
    show();
    say(isOpen(panels()) ? "Only this item is open." : "All items are answered. Save the verdicts.");
  }

  function judge(verdict) {
    if (isTile(current()) && verdict !== "cannot-tell") return;
    const wasAnswered = isAnswered(current());
    const name = current().item;
    answer({ verdict, count: null });
    say(`Item ${name}: ${wordsOf(verdict)}`);
    // A correction stays where it is, to be looked at.
    if (wasAnswered) show();
    else goOn();
  }

  function setCount(count) {
    if (count !== null && (count < 0 || count > data.most)) return;
    answer({ verdict: "", count });
    show();
  }

  function clear() {
    answer({ verdict: "", count: null });
    say(`Item ${current().item}: no verdict`);
    show();
  }

  function toggle(...sides) {
    const isShown = sides.length > 1 ? !sides.some((side) => shown[side]) : !shown[sides[0]];
    for (const side of sides) shown[side] = isShown;
    show();
  }

  // --- buttons, fields and keys ----------------------------------------------------------------

  data.verdicts.forEach(({ verdict, words, meaning }, number) => {
    const button = element(
      "button", { value: verdict }, element("kbd", { textContent: number + 1 }), words,
      element("small", { textContent: meaning }),
    );
    button.addEventListener("click", () => judge(verdict));
    byId("verdicts").append(button);
  });
  for (const side of SIDES) {
    const line = { x1: 0, x2: 24, y1: 4, y2: 4, stroke: data.colours[side] };
    byId(side).firstElementChild.append(drawing("line", line));
    byId(side).addEventListener("click", () => toggle(side));
  }
  const actions = {
    previous: () => go(place - 1),
    next: () => go(place + 1),
    open: goOn,
    clear,
    unclear: () => judge("cannot-tell"),
    fewer: () => setCount(Math.max((answerOf(current()).count ?? 0) - 1, 0)),
    more: () => setCount((answerOf(current()).count ?? 0) + 1),
    in: () => zoom(1 / 1.4),
    out: () => zoom(1.4),
    whole: () => look([0, 0, current().field]),
    save,
    load: () => byId("file").click(),
    help: () => byId("keys").showModal(),
  };
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
  byId("file").addEventListener("change", () => {
    const [file] = byId("file").files;
    byId("file").value = "";
    if (file) load(file);
  });
  byId("reviewer").addEventListener("input", keep);
  byId("note").addEventListener("input", () => {
    answer({ note: whole(byId("note").value) });
    byId("done").textContent = `${given().length} of ${data.items.length} answered`;
  });
  byId("count").addEventListener("input", () => {
    const text = byId("count").value.replace(/\D/g, "");
    setCount(text === "" ? null : Number(text));
  });

  const keys = {
    ArrowLeft: actions.previous,
    ArrowRight: actions.next,
    Enter: () => isAnswered(current()) && goOn(),
    o: goOn,
    b: () => select(panels().length - 1 - panel),
    u: clear,
    n: () => byId("note").focus(),
    a: () => toggle("annotation"),
    p: () => toggle("prediction"),
    h: () => toggle(...SIDES),
    "+": actions.in,
    "=": actions.in,
    "-": actions.out,
    "−": actions.out,
    f: actions.whole,
    c: () => isTile(current()) && judge("cannot-tell"),
    s: save,
    "?": actions.help,
  };
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  function actionOf(event) {
    const field = event.target;
    const isText = field === byId("note") || field === byId("reviewer");
    const digit = /^Digit([1-4])$/.exec(event.code)?.[1] ?? (/^[1-4]$/.test(event.key) && event.key);
    if (event.altKey) return digit && !isTile(current()) ? () => judge(data.verdicts[digit - 1].verdict) : null;
    if (event.ctrlKey || event.metaKey || byId("keys").open) return null;
    if (isText) return event.key === "Escape" ? () => field.blur() : null;
    if (event.shiftKey && moves[event.key]) {
      return () => move(...moves[event.key].map((step) => step / 5));
    }
    if (/^\d$/.test(event.key)) {
      if (!isTile(current())) {
        const chosen = data.verdicts[event.key - 1];
        return chosen ? () => judge(chosen.verdict) : null;
      }
      if (field === byId("count")) return null; // typed there
      return () => {
        byId("count").focus();
        setCount(Number(event.key));
      };
    }
    if (event.key === "Enter" && field instanceof HTMLButtonElement) return null; // presses it
    const own = Object.hasOwn(keys, event.key) ? event.key : event.key.toLowerCase();
    return Object.hasOwn(keys, own) ? keys[own] : null;
  }

  document.addEventListener("keydown", (event) => {
    const action = actionOf(event);
    if (!action) return;
    event.preventDefault();
    action();
  });
  window.addEventListener("resize", () => look(view));
  window.addEventListener("storage", (event) => {
    if (event.key !== STORAGE_KEY) return;
    const known = stored();
    if (Array.isArray(known.answers) && take(known.answers.filter(Array.isArray))) show();
  });
  window.addEventListener("beforeunload", (event) => {
    if (!isKept && unsaved()) event.preventDefault();
  });

  restore();
  go(place);
})();
