#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/op.hpp"

namespace gpunn::conformance {

// An op that must be served, and for which types of its first input (of its output, where it has none).
struct RequiredOp {
  int32_t op;
  std::vector<DType> types;  // empty: any that there is a case of
};

// A set of ops that a backend must serve to be usable for a purpose.
struct Profile {
  std::string_view name;
  std::string_view what;
  std::vector<RequiredOp> ops;  // of the core; empty: every op
};

const std::vector<Profile>& profiles();
// Throws Error(usage) with the candidates.
const Profile& find_profile(const std::string& name);

// Whether a case of this op and type must run. A composite op never must: its decomposition can run in its place. Cases
// that are not about an op of the catalogue (a stream, a loss curve) always must. The trainings of the suites "graph"
// and "subgraphs" use dropout, and must only if dropout must.
bool demands(const Profile& profile, std::string_view op, std::string_view type);

}  // namespace gpunn::conformance
