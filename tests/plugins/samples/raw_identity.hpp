// What the samples made of raw_plugin.cpp differ in.
#pragma once

struct Identity {
  const char* name;
  const char* variant;
  const char* base;  // or ""
  const char* ops;   // "all" or "relu"
  int priority;
  const char* alternatives;  // or ""
};

extern const Identity kIdentity;
