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
  // None if --profile was not given.
  std::optional<ProfileOptions> get() const;
};

// Help text: `what` is measured; `without_file` says where the trace goes if no file is named.
void add_profile_options(Verb verb, ProfileArguments& arguments, const std::string& what = "training steps",
                         const std::string& without_file = "by default trace.json in the run folder");

// Prints the ops by their time, the largest first, and the ceilings.
std::string profile_text(const ProfileReport& report, bool colour);

}  // namespace gpunn::cli
