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

// What a backend must be able to do to be good for something.
struct Profile {
  std::string_view name;
  std::string_view what;
  std::vector<RequiredOp> ops;  // of the core; empty: every op
};

const std::vector<Profile>& profiles();
// Throws Error(usage) with the candidates.
const Profile& find_profile(const std::string& name);

// Whether a case of this op and type must run. A fused op never must: its decomposition runs in its place. What is not
// about an op of the catalogue (a stream, the training of a network) always must; the suite of programs where dropout
// must, which they need.
bool demands(const Profile& profile, std::string_view op, std::string_view type);

}  // namespace gpunn::conformance
