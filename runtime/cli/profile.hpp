#pragma once

#include <gpunn/profile.hpp>

#include <optional>
#include <string>

#include "cli/parser/arguments.hpp"

namespace gpunn::cli {

// --profile [FILE] and --profile-steps.
struct ProfileArguments {
  Argument option;
  ProfileOptions values;
  // None where --profile was not given.
  std::optional<ProfileOptions> get() const;
};

// `what` is measured; `without_file` says what becomes of the trace where no file is named.
void add_profile_options(Verb verb, ProfileArguments& arguments, const std::string& what = "training steps",
                         const std::string& without_file = "by default trace.json in the run folder");

// The ops by the time they take, the largest first, and what they are compared with.
std::string profile_text(const ProfileReport& report, bool colour);

}  // namespace gpunn::cli
