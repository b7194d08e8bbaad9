window.ui = SwaggerUIBundle({
  url: document.currentScript.dataset.openapi,
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  validatorUrl: null,
});
