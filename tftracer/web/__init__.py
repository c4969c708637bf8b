"""The Tornado server: REST, WebSocket and the page. Imports no TensorFlow."""
