"""How the services are spoken: gRPC and REST, over loopback."""
