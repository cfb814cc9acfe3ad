// Optional comfort: countdowns, live lists, and the token taken from the link. The page works without it.
"use strict";

(() => {
  // The token stands behind "#", so it is never sent in a request line, a log or a Referer.
  const tokenField = document.getElementById("token");
  function takeToken() {
    if (!location.hash.startsWith("#token=")) return false;
    tokenField.value = decodeURIComponent(location.hash.slice(7));
    history.replaceState(null, "", location.pathname);
    tokenField.form.requestSubmit();
    return true;
  }
  if (tokenField) {
    window.addEventListener("hashchange", takeToken);
    if (takeToken()) return;
  }

  const started = performance.now();
  const serverNow = Number(document.body.dataset.now || 0);

  function text(seconds) {
    if (seconds <= 0) return "expired";
    const d = Math.floor(seconds / 86400), h = Math.floor((seconds % 86400) / 3600);
    const m = Math.floor((seconds % 3600) / 60), s = seconds % 60;
    if (d) return `${d} d ${h} h`;
    if (h) return `${h} h ${String(m).padStart(2, "0")} min`;
    return m ? `${m} min ${String(s).padStart(2, "0")} s` : `${s} s`;
  }

  function tick() {
    const now = serverNow + (performance.now() - started);
    for (const clock of document.querySelectorAll("[data-expires]")) {
      const left = Math.floor((Number(clock.dataset.expires) - now) / 1000);
      clock.textContent = left > 0 ? `expires in ${text(left)}` : "expired";
      clock.classList.toggle("soon", left < 60);
    }
  }
  if (serverNow) {
    tick();
    setInterval(tick, 1000);
  }

  const main = document.querySelector("main[data-live]");
  if (!main || !window.EventSource) return;
  const announce = document.getElementById("announce");
  let waiting = false;

  async function refresh() {
    if (waiting) return;
    waiting = true;
    try {
      const answer = await fetch(location.pathname + location.search, { credentials: "same-origin", redirect: "error" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("main[data-live]");
      if (!fresh || fresh.dataset.state === main.dataset.state) return;
      if (main.dataset.live === "list") {
        const focused = document.activeElement && document.activeElement.id;
        // not the whole page: somebody may be typing into the search
        document.getElementById("results").replaceChildren(...page.getElementById("results").childNodes);
        for (const count of main.querySelectorAll("[data-count]")) {
          count.textContent = page.querySelector(`[data-count=${count.dataset.count}]`).textContent;
        }
        if (focused && document.getElementById(focused)) document.getElementById(focused).focus();
        tick();
      } else {
        // never replace a form under somebody's hands: say it, and let them reload
        document.getElementById("changed").hidden = false;
      }
      main.dataset.state = fresh.dataset.state;
      announce.textContent = fresh.dataset.summary || "";
      document.title = page.title;
    } catch (error) {
      announce.textContent = "";
    } finally {
      waiting = false;
    }
  }

  const events = new EventSource("/events");
  events.addEventListener("change", refresh);
})();
