#pragma once

#include <functional>
#include <optional>
#include <string>

namespace gpunn::config {

// `backend: check:A,B`: train on A, and compare B with it at every step.
struct CheckedBackends {
  std::string trained, checked;
  std::string text() const { return "check:" + trained + "," + checked; }
};

// Empty where `backend` names one. Throws Error(usage) where what follows "check:" are not two names.
std::optional<CheckedBackends> checked_backends(const std::string& backend);

// Calls `resolve` with the one backend that `backend` names, or with each of two, and replaces the names by the
// results. A malformed pair stays unchanged.
void resolve_backend(std::string& backend, const std::function<void(std::string&)>& resolve);

// The one that trains: A, or `backend` itself.
std::string trained_backend(const std::string& backend);

// For verbs that use one backend only: throws Error(usage) if `backend` names two.
void require_one_backend(const std::string& backend, const std::string& what);

}  // namespace gpunn::config
