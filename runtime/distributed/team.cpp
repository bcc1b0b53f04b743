#include "distributed/team.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "common/hash.hpp"
#include "common/parse_number.hpp"
#include "distributed/sum.hpp"

namespace gpunn::distributed {

namespace {

constexpr std::chrono::seconds kPatience{120};
// Up to here every rank gets all numbers and adds them up itself: one exchange in place of two.
constexpr std::size_t kSmall = 8192;

std::chrono::seconds patience() {
  const char* const text = std::getenv("GPUNN_RENDEZVOUS_SECONDS");  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr) return kPatience;
  if (const std::optional<int> seconds = parse_number<int>(text); seconds && *seconds > 0) {
    return std::chrono::seconds(*seconds);
  }
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

std::string digest_of(std::string_view text) { return fmt::format("{:016x}", hash_of(text)); }

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

void Team::all_reduce(DType dtype, std::span<std::byte> values) { all_reduce_parts(dtype, values, values, world()); }

// Each rank adds up a range of the elements, whose parts it gets from all, and gives the sums to all. Of a few elements
// every rank gets all parts and adds them up itself.
void Team::all_reduce_parts(DType dtype, std::span<const std::byte> x, std::span<std::byte> y, int64_t parts) {
  const auto ranks = static_cast<std::size_t>(world()), own = static_cast<std::size_t>(rank());
  const auto count = [&](std::size_t r) {
    return static_cast<std::size_t>(share_of(parts, static_cast<int>(r), world()).count());
  };
  if (x.size() != count(own) * y.size()) {
    throw Error("a sum over " + std::to_string(parts) + " parts got " + std::to_string(x.size()) + " bytes of " +
                std::to_string(count(own)) + " parts");
  }
  const bool small = y.size() <= kSmall;
  const std::size_t width = size_of(dtype), elements = y.size() / width;
  // The range of elements that a rank adds up.
  const auto begin = [&](std::size_t r) { return small ? 0 : elements * r / ranks * width; };
  const auto end = [&](std::size_t r) { return small ? y.size() : elements * (r + 1) / ranks * width; };
  const std::size_t range = end(own) - begin(own);

  // Parts of a rank cross the wire one behind another, cut to the range of the receiver.
  std::size_t packed = 0;
  const std::size_t to_send = x.size() == y.size() ? 0 : x.size();  // a single part lies in one piece already
  const std::span<std::byte> room =
      scratch(to_send * (small ? 0 : 1) + range * (static_cast<std::size_t>(parts) - count(own)));
  const auto take = [&](std::size_t size) {
    packed += size;
    return room.subspan(packed - size, size);
  };
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  std::vector<const std::byte*> sources;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (r == own) {
      for (std::size_t p = 0; p < count(own); ++p) sources.push_back(x.data() + p * y.size() + begin(own));
      continue;
    }
    const std::size_t size = end(r) - begin(r);
    std::span<const std::byte> message = small ? x : x.subspan(begin(r), to_send == 0 ? size : 0);
    if (!small && to_send > 0) {
      const std::span<std::byte> copy = take(size * count(own));
      for (std::size_t p = 0; p < count(own); ++p) {
        std::memcpy(copy.data() + p * size, x.data() + p * y.size() + begin(r), size);
      }
      message = copy;
    }
    out.push_back({static_cast<int>(r), message});
    const std::span<std::byte> got = take(range * count(r));
    in.push_back({static_cast<int>(r), got});
    for (std::size_t p = 0; p < count(r); ++p) sources.push_back(got.data() + p * range);
  }
  links_.transfer(out, in);
  const std::span<std::byte> mine = y.subspan(begin(own), range);
  sum_in_order(dtype, sources, mine);
  if (small) return;
  for (Outgoing& one : out) one.bytes = mine;
  for (Incoming& one : in) {
    const auto from = static_cast<std::size_t>(one.from);
    one.bytes = y.subspan(begin(from), end(from) - begin(from));
  }
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
    throw SharedError("the ranks do not train the same:" + differences + "\nStart all of them with the same files",
                      ExitCode::usage);
  }
}

void Team::leave() {
  any(false);
  watch_.leave();
}

}  // namespace gpunn::distributed
