{% raw %}
{
  const page = document.documentElement;
  const by = (id) => document.getElementById(id);
  const kept = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("theme", value); } catch { /* it is not remembered then */ } } };
  const dark = () => page.dataset.theme ? page.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = by("theme");
  const name = () => { theme.textContent = dark() ? "Light mode" : "Dark mode"; };
  if (["dark", "light"].includes(kept.get())) page.dataset.theme = kept.get();
  theme.hidden = false;
  name();
  theme.addEventListener("click", () => { page.dataset.theme = dark() ? "light" : "dark"; kept.set(page.dataset.theme); name(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);

  const table = by("runs");
  if (table) {
    const rows = [...table.tBodies[0].rows];
    const text = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const filter = by("filter");
    const choices = [...document.querySelectorAll("select[data-filter]")];
    const chosen = () => [...document.querySelectorAll('input[name="run"]:checked')];
    const shown = () => [...table.tBodies[0].rows].filter((row) => !row.hidden);
    const sift = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const told = words.every((word) => text.get(row).includes(word));
        row.hidden = !told || !choices.every((one) => !one.value || row.dataset[one.dataset.filter].split("\n").includes(one.value));
      }
      const count = shown().length;
      by("shown").textContent = count === rows.length ? "" : count + " of " + rows.length + " shown";
    };
    const tally = () => {
      const count = chosen().length;
      by("go").disabled = count !== 2;
      by("picked").textContent = ["Mark two audits.", "Mark one more.", ""][count] ?? count + " are marked; two can be compared.";
    };
    const clear = () => { filter.value = ""; for (const one of choices) one.value = ""; sift(); };
    const move = (step) => {
      const links = shown().map((row) => row.querySelector(".open"));
      const row = document.activeElement.closest("#runs tbody tr");
      const at = row ? links.indexOf(row.querySelector(".open")) + step : 0;
      links[Math.min(Math.max(at, 0), links.length - 1)]?.focus();
    };
    filter.addEventListener("input", sift);
    for (const one of choices) one.addEventListener("change", sift);
    document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
    table.addEventListener("change", tally);
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const typing = event.target.matches("input[type=search], select");
      if (event.key === "/" && !typing) { event.preventDefault(); filter.focus(); filter.select(); }
      else if (event.key === "Escape") { clear(); }
      else if (event.key === "ArrowDown" && !event.target.matches("select")) { event.preventDefault(); move(1); }
      else if (event.key === "ArrowUp" && !typing) { event.preventDefault(); move(-1); }
    });
    sift();
    tally();
  }
}
{% endraw %}
