// Live numbers, and an overview that updates itself. Everything else on the pages works without scripts.
"use strict";
(() => {
  const section = document.getElementById("live");
  if (!section || !("EventSource" in window)) return;
  const part = (name) => document.getElementById("live-" + name);
  const show = (name, text) => { if (part(name).textContent !== text) part(name).textContent = text; };
  const seconds = 60, width = 600, base = 66, height = 52;
  let rates = [], source = null, announcedAt = 0, database = null;

  // Screen readers announce a change of the database's state at once, and other numbers every half minute.
  const announce = (now) => {
    const at = Date.now();
    if (database !== null && now.database === database && at - announcedAt < 30000) return;
    if (database !== null) show("announcement", now.sentence);
    database = now.database;
    announcedAt = at;
  };
  const draw = () => {
    const top = Math.max(1, ...rates);
    show("top", top < 10 ? top.toFixed(1) : Math.round(top).toLocaleString("en"));
    const points = rates.map((rate, index) =>
      (width - (rates.length - 1 - index) * width / (seconds - 1)).toFixed(1) + "," + (base - height * rate / top).toFixed(1));
    part("line").setAttribute("points", points.join(" "));
  };
  // Figures from the database are part of the page's HTML: the page is fetched again, and parts that differ are replaced.
  const shown = new Map();
  for (const each of document.querySelectorAll("[data-part]")) shown.set(each.dataset.part, each.outerHTML);
  let timer = null, fetching = null;
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
      const answer = await fetch(location.href, { cache: "no-store", signal });
      // The session has ended and this is the sign-in page: keep what is shown.
      if (answer.redirected) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const each of fresh.querySelectorAll("[data-part]")) replace(each);
    } catch {
      // The live numbers report a lost connection.
      if (signal.aborted) return;
    }
    refreshLater();
  };
  const refreshLater = () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, 1000 * document.querySelector("[data-refresh]").dataset.refresh);
  };
  const end = (text) => {
    stop();
    show("state", text);
    part("pause").hidden = true;
  };
  const listen = () => {
    refreshLater();
    source = new EventSource(section.dataset.source);
    source.addEventListener("figures", (event) => {
      const now = JSON.parse(event.data);
      for (const name of ["rate", "p99", "queue", "database"]) show(name, now[name]);
      part("database").className = "state " + now.state;
      show("state", "Live, updated every second.");
      rates = rates.concat(now.number).slice(-seconds);
      draw();
      part("chart").hidden = rates.length < 3;
      announce(now);
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
  part("pause").addEventListener("click", () => {
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
  part("pause").hidden = false;
  listen();
  // A hidden page shows nothing, so it stops asking the service.
  let wasLive = true;
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      wasLive = source !== null;
      stop();
    } else if (wasLive && !source && !part("pause").hidden) {
      listen();
      refresh();
    }
  });
})();
