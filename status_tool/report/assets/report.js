"use strict";
(function () {
  var root = document.documentElement;
  root.classList.add("has-js");
  var all = function (query, of) { return Array.prototype.slice.call((of || document).querySelectorAll(query)); };
  var names = {};
  all("tr[data-n]").forEach(function (row) { names[row.dataset.n] = row.cells[2].textContent.toLowerCase(); });
  var box = document.getElementById("search"), found = document.getElementById("found"), rows = null;
  function index() {
    rows = all(".group").map(function (group) {
      var head = all(".head", group).map(function (one) { return one.textContent; }).join(" ").toLowerCase();
      return { group: group, head: head, rows: all("tbody tr", group).map(function (row) {
        var server = row.cells[Number(group.dataset.s)];
        var name = server && names[server.textContent.trim()];
        return { row: row, text: row.textContent.toLowerCase() + (name ? " " + name : "") };
      }) };
    });
  }
  function unfold(details) { if (details.querySelector(".rows")) details.open = true; }
  function search() {
    if (!rows) index();
    var words = box.value.toLowerCase().split(/\s+/).filter(Boolean), count = 0;
    rows.forEach(function (one) {
      var shown = 0;
      one.rows.forEach(function (item) {
        var fits = words.every(function (word) { return one.head.includes(word) || item.text.includes(word); });
        item.row.hidden = !fits;
        shown += fits;
      });
      one.group.hidden = !shown;
      if (words.length && shown) all("details", one.group).forEach(unfold);
      count += shown;
    });
    all(".chunk").forEach(function (chunk) { chunk.hidden = !chunk.querySelector("tbody tr:not([hidden])"); });
    found.textContent = words.length ? count + " found" : "";
  }
  var waiting;
  if (box) box.addEventListener("input", function () { clearTimeout(waiting); waiting = setTimeout(search, 120); });

  function value(row, column) {
    var cell = row.cells[column];
    if (!cell) return "";
    return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent;
  }
  function compare(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  }
  function sort(head) {
    var down = head.getAttribute("aria-sort") === "ascending", column = head.cellIndex;
    var scope = head.closest(".group") || head.closest("table");
    all("th[aria-sort]", scope).forEach(function (other) { other.setAttribute("aria-sort", "none"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    var bodies = all("tbody", scope);
    var keyed = all("tbody tr", scope).map(function (row, place) { return { row: row, key: value(row, column), place: place }; });
    keyed.sort(function (a, b) { return (down ? -1 : 1) * compare(a.key, b.key) || a.place - b.place; });
    var each = Math.ceil(keyed.length / bodies.length);
    bodies.forEach(function (body, number) {
      keyed.slice(number * each, (number + 1) * each).forEach(function (item) { body.appendChild(item.row); });
    });
  }
  all("table.sort thead th").forEach(function (head) {
    head.setAttribute("aria-sort", "none");
    head.tabIndex = 0;
    head.addEventListener("click", function () { sort(head); });
    head.addEventListener("keydown", function (event) { if (event.key === "Enter") sort(head); });
  });
  function target() {
    var at = location.hash && document.getElementById(location.hash.slice(1));
    var folded = at && at.closest("details");
    if (folded && !folded.open) { folded.open = true; at.scrollIntoView(); }
  }
  addEventListener("hashchange", target);
  target();
  addEventListener("beforeprint", function () {
    all("details:not(.big)").forEach(function (one) { one.open = true; });
  });
  all(".cmd").forEach(function (block) {
    var button = document.createElement("button");
    button.textContent = "Copy";
    button.addEventListener("click", function () {
      var text = block.querySelector("pre").textContent, done = function () { button.textContent = "Copied"; };
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select); else select();
      function select() { getSelection().selectAllChildren(block.querySelector("pre")); document.execCommand("copy"); done(); }
    });
    block.appendChild(button);
  });
})();
