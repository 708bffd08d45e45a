window.onload = () => {
  window.ui = SwaggerUIBundle({
    "dom_id": "#swagger-ui",
    "url": "/openapi.json",
    "deepLinking": true,
    "layout": "BaseLayout",
    "defaultModelsExpandDepth": -1,
    // Swagger UI's default sends the document to a validator on the internet.
    "validatorUrl": "none",
    presets: [SwaggerUIBundle.presets.apis],
  });
};
