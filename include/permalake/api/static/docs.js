// The style sheet has a dark theme behind a class; the reader's setting decides.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
follow();
dark.addEventListener("change", follow);
window.ui = SwaggerUIBundle({
  url: document.currentScript.dataset.openapi,
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  validatorUrl: null,
});
