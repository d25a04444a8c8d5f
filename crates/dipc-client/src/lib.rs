//! Client of .NET diagnostic ports: process information and EventPipe sessions, with a deadline on every step
