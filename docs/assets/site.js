// What the theme adds to a page gets a name for screen readers, and tables that scroll can be
// reached with the keyboard.
const named = () => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav, place) => {
    nav.setAttribute("aria-label", `Code ${place + 1}`);
  });
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((wrap, place) => {
    wrap.setAttribute("tabindex", "0");
    wrap.setAttribute("role", "region");
    wrap.setAttribute("aria-label", `Table ${place + 1}`);
  });
};
new MutationObserver(named).observe(document.body, { childList: true, subtree: true });
named();
