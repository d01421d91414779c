// Updates the live numbers every second, and the figures of the overview at longer intervals; a list until it is read.
// Everything else on the pages works without scripts.
"use strict";
(() => {
  const section = document.getElementById("live");
  if (section && !("EventSource" in window)) return;
  const element = (name) => document.getElementById("live-" + name);
  const show = (name, text) => { if (element(name).textContent !== text) element(name).textContent = text; };
  // The chart has a point per second. Width, baseline and height are those of the SVG in live.mustache.
  const seconds = 60, width = 600, base = 66, height = 52;
  let rates = [], source = null, announcedAt = 0, database = null;

  // Screen readers announce a change of the database's state at once, and other numbers every half minute.
  const announce = (figures) => {
    const now = Date.now();
    if (database !== null && figures.database === database && now - announcedAt < 30000) return;
    if (database !== null) show("announcement", figures.sentence);
    database = figures.database;
    announcedAt = now;
  };
  const draw = () => {
    const top = Math.max(1, ...rates);
    show("top", top < 10 ? top.toFixed(1) : Math.round(top).toLocaleString("en"));
    const points = rates.map((rate, index) =>
      (width - (rates.length - 1 - index) * width / (seconds - 1)).toFixed(1) + "," + (base - height * rate / top).toFixed(1));
    element("line").setAttribute("points", points.join(" "));
  };
  // Other figures are part of the page's HTML. The script fetches the page again, and replaces the [data-part] elements
  // that differ. `shown` has their HTML as the server sent it, because the reader may have opened details since.
  const shown = new Map();
  for (const each of document.querySelectorAll("[data-part]")) shown.set(each.dataset.part, each.outerHTML);
  let timer = null, fetching = null;
  // An element that has the focus or a selection is not replaced.
  const isInUse = (each) => {
    const selection = getSelection();
    return each.contains(document.activeElement) || (selection.type === "Range" && selection.containsNode(each, true));
  };
  const replace = (fresh) => {
    const old = document.querySelector(`[data-part="${fresh.dataset.part}"]`);
    const html = fresh.outerHTML;
    if (!old || shown.get(fresh.dataset.part) === html || isInUse(old)) return;
    shown.set(fresh.dataset.part, html);
    const all = (within, selector) => [...within.querySelectorAll(selector)];
    const isOpen = all(old, "details").map((each) => each.open);
    const scrolled = all(old, ".scroll").map((each) => each.scrollLeft);
    old.replaceWith(fresh);
    all(fresh, "details").forEach((each, index) => { each.open = isOpen[index] || false; });
    all(fresh, ".scroll").forEach((each, index) => { each.scrollLeft = scrolled[index] || 0; });
  };
  const refresh = async () => {
    fetching = new AbortController();
    const { signal } = fetching;
    try {
      const response = await fetch(location.href, { cache: "no-store", signal });
      // The session has ended and this is the sign-in page: keep what is shown.
      if (response.redirected) return;
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const each of fresh.querySelectorAll("[data-part]")) replace(each);
    } catch {
      // A lost connection needs no message here: the state of the live numbers shows it.
      if (signal.aborted) return;
    }
    refreshLater();
  };
  const refreshLater = () => {
    clearTimeout(timer);
    const due = document.querySelector("[data-refresh]");
    if (due) timer = setTimeout(refresh, 1000 * due.dataset.refresh);
  };
  const end = (text) => {
    stop();
    show("state", text);
    element("pause").hidden = true;
  };
  if (!section) return refreshLater();
  const listen = () => {
    refreshLater();
    source = new EventSource(section.dataset.source);
    source.addEventListener("figures", (event) => {
      const figures = JSON.parse(event.data);
      for (const name of ["rate", "p99", "queue", "database"]) show(name, figures[name]);
      element("database").className = "state " + figures.state;
      show("state", "Live, updated every second.");
      rates = rates.concat(figures.number).slice(-seconds);
      draw();
      element("chart").hidden = rates.length < 3;
      announce(figures);
    });
    source.addEventListener("end", (event) => end(JSON.parse(event.data).text));
    source.onerror = () => {
      if (source && source.readyState === EventSource.CLOSED) {
        end("Live numbers have stopped. Reload the page to continue.");
      } else {
        show("state", "Connection lost; reconnecting.");
      }
    };
  };
  const stop = () => {
    clearTimeout(timer);
    if (fetching) fetching.abort();
    if (source) source.close();
    source = null;
  };
  element("pause").addEventListener("click", () => {
    if (source) {
      stop();
      show("state", "Paused.");
      show("pause", "Resume");
    } else {
      rates = [];
      show("pause", "Pause");
      listen();
      refresh();
    }
  });
  element("pause").hidden = false;
  listen();
  // A hidden page sends no requests.
  let wasLive = true;
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      wasLive = source !== null;
      stop();
    } else if (wasLive && !source && !element("pause").hidden) {
      listen();
      refresh();
    }
  });
})();
