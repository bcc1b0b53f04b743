#include "distributed/team.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "distributed/sum.hpp"

namespace gpunn::distributed {

namespace {

constexpr std::chrono::seconds kPatience{120};
// Up to here every rank gets all numbers and adds them up itself: one exchange in place of two.
constexpr std::size_t kSmall = 8192;

std::chrono::seconds patience() {
  const char* const text = std::getenv("GPUNN_RENDEZVOUS_SECONDS");  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr) return kPatience;
  int seconds = 0;
  const char* const end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, seconds);
  if (error == std::errc() && stopped == end && seconds > 0) return std::chrono::seconds(seconds);
  throw Error("GPUNN_RENDEZVOUS_SECONDS is '" + std::string(text) + "'; expected a whole number of seconds",
              ExitCode::usage);
}

RankPlace placed(RankPlace place, const std::vector<RankInfo>& ranks) {
  place.local_rank = place.local_world = 0;
  for (int r = 0; r < place.world; ++r) {
    if (ranks[static_cast<std::size_t>(r)].machine != ranks[static_cast<std::size_t>(place.rank)].machine) continue;
    if (r < place.rank) ++place.local_rank;
    ++place.local_world;
  }
  return place;
}

}  // namespace

std::string digest_of(std::string_view text) {
  uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return fmt::format("{:016x}", hash);
}

std::shared_ptr<Team> Team::join(const RankPlace& place) {
  return std::shared_ptr<Team>(new Team(place, meet(place, patience())));
}

Team::Team(const RankPlace& place, Meeting meeting)
    : place_(placed(place, meeting.ranks)),
      ranks_(std::move(meeting.ranks)),
      watch_(place.rank, ranks_, std::move(meeting.watches)),
      links_(place.rank, ranks_, std::move(meeting.data), watch_) {}

Team::~Team() = default;

std::span<std::byte> Team::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return std::span(scratch_).first(bytes);
}

void Team::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  const std::size_t size = mine.size();
  for (int r = 0; r < world(); ++r) {
    const std::span<std::byte> part = all.subspan(static_cast<std::size_t>(r) * size, size);
    if (r == rank()) {
      if (part.data() != mine.data() && size > 0) std::memmove(part.data(), mine.data(), size);
    } else {
      out.push_back({r, mine});
      in.push_back({r, part});
    }
  }
  links_.transfer(out, in);
}

std::vector<std::vector<std::byte>> Team::gather(std::span<const std::byte> mine) {
  const auto count = static_cast<std::size_t>(world());
  std::vector<uint64_t> sizes(count);
  const uint64_t size = mine.size();
  all_gather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)));
  std::vector<std::vector<std::byte>> result(count);
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (int r = 0; r < world(); ++r) {
    std::vector<std::byte>& part = result[static_cast<std::size_t>(r)];
    part.resize(sizes[static_cast<std::size_t>(r)]);
    if (r == rank()) {
      std::ranges::copy(mine, part.begin());
    } else {
      out.push_back({r, mine});
      in.push_back({r, part});
    }
  }
  links_.transfer(out, in);
  return result;
}

std::vector<std::string> Team::gather(const std::string& mine) {
  std::vector<std::string> result;
  for (const std::vector<std::byte>& text : gather(std::as_bytes(std::span(mine)))) {
    result.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
  }
  return result;
}

void Team::broadcast(std::span<std::byte> bytes, int root) {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  if (rank() != root) {
    in.push_back({root, bytes});
  } else {
    for (int r = 0; r < world(); ++r) {
      if (r != root) out.push_back({r, bytes});
    }
  }
  links_.transfer(out, in);
}

// Each rank adds up a part of the numbers, which it gets from all, and gives the sums to all.
void Team::all_reduce(DType dtype, std::span<std::byte> values) {
  const auto ranks = static_cast<std::size_t>(world()), own = static_cast<std::size_t>(rank());
  std::vector<const std::byte*> parts(ranks);
  if (values.size() <= kSmall) {
    const std::span<std::byte> all = scratch(values.size() * ranks);
    all_gather(values, all);
    for (std::size_t r = 0; r < ranks; ++r) parts[r] = all.data() + r * values.size();
    return sum_in_order(dtype, parts, values);
  }
  const std::size_t width = size_of(dtype);
  const auto begin = [&](std::size_t r) { return values.size() / width * r / ranks * width; };
  const auto part = [&](std::size_t r) { return values.subspan(begin(r), begin(r + 1) - begin(r)); };
  const std::span<std::byte> mine = part(own);
  const std::span<std::byte> got = scratch(mine.size() * ranks);
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (std::size_t r = 0; r < ranks; ++r) {
    parts[r] = r == own ? mine.data() : got.data() + r * mine.size();
    if (r == own) continue;
    out.push_back({static_cast<int>(r), part(r)});
    in.push_back({static_cast<int>(r), got.subspan(r * mine.size(), mine.size())});
  }
  links_.transfer(out, in);
  sum_in_order(dtype, parts, mine);
  for (Outgoing& one : out) one.bytes = mine;
  for (Incoming& one : in) one.bytes = part(static_cast<std::size_t>(one.from));
  links_.transfer(out, in);
}

std::vector<double> Team::sums(std::vector<double> values) {
  all_reduce(DType::f64, std::as_writable_bytes(std::span(values)));
  return values;
}

bool Team::any(bool mine) { return sums({mine ? 1.0 : 0.0}).front() > 0; }

void Team::require_equal(const std::vector<Fact>& facts) {
  std::string mine;
  for (const Fact& fact : facts) mine += fact.name + "\t" + fact.digest + "\n";
  const std::vector<std::string> all = gather(mine);
  const auto lines = [](const std::string& text) {
    std::vector<std::string> found;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      found.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return found;
  };
  const std::vector<std::string> first = lines(all.front());
  std::string differences;
  for (int r = 1; r < world(); ++r) {
    const std::vector<std::string> own = lines(all[static_cast<std::size_t>(r)]);
    for (std::size_t i = 0; i < first.size() && i < own.size(); ++i) {
      if (own[i] == first[i]) continue;
      const std::size_t tab = first[i].find('\t');
      differences += "\n  " + first[i].substr(0, tab) + ": " + first[i].substr(tab + 1) + " on rank 0, " +
                     own[i].substr(own[i].find('\t') + 1) + " on " + text_of(r);
    }
  }
  if (!differences.empty()) {
    throw Error("the ranks do not train the same:" + differences + "\nStart all of them with the same files",
                ExitCode::usage);
  }
}

void Team::leave() {
  any(false);
  watch_.leave();
}

}  // namespace gpunn::distributed
