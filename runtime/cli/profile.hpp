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

// `file_required`: where there is no run folder for a file of its own.
void add_profile_options(Verb verb, ProfileArguments& arguments, bool file_required = false);

// The ops by the time they take, the largest first, and what they are compared with.
std::string profile_text(const ProfileReport& report, bool colour);

}  // namespace gpunn::cli
