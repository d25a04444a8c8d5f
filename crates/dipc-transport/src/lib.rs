//! Endpoints of .NET diagnostic ports: discovery, connections with deadlines, checked peers, listening
