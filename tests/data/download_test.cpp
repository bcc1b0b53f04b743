#include "data/download/download.hpp"

#include <gpunn/progress.hpp>

#include <chrono>
#include <iostream>
#include <thread>

#include "catch.hpp"
#include "data/download/digest.hpp"
#include "data/download/unpack.hpp"
#include "files.hpp"
#include "http_server.hpp"

using gpunn::data::download_files;
using gpunn::data::DownloadJob;
using test::gzip;
using test::HttpServer;
using test::read_file;
using test::write_file;

namespace {

bool skipped() {
  if (gpunn::data::http_supported()) return false;
  std::cout << "skipped: downloads (built without libcurl or OpenSSL)\n";
  return true;
}

// A file to fetch, its content and a place for it.
struct Fixture {
  test::Variable no_proxy{"no_proxy", "127.0.0.1"};
  test::TemporaryFolder folder;
  std::string content = test::counting_bytes(300000);
  std::string packed = gzip(content);
  test::fs::path file = folder / "set/x.gz";
  test::fs::path part = folder / "set/x.gz.part";
  DownloadJob job;

  Fixture() {
    write_file(folder / "original", content);
    job.files = {{"x.gz", content.size(), gpunn::data::sha256_of_unpacked(folder / "original", content.size())}};
    job.folder = folder / "set";
    job.limits.connect_seconds = 2;
    job.limits.slow_seconds = 1;
  }
  void check_arrived() const {
    CHECK(read_file(file) == packed);
    CHECK(!test::fs::exists(part));
  }
};

}  // namespace

TEST_CASE("SHA-256 of what a file unpacks to") {
  if (skipped()) return;
  const test::TemporaryFolder folder;
  const std::string expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";  // FIPS 180-2, B.1
  write_file(folder / "plain", "abc");
  write_file(folder / "packed", gzip("abc"));
  CHECK(gpunn::data::sha256_of_unpacked(folder / "plain", 3) == expected);
  CHECK(gpunn::data::sha256_of_unpacked(folder / "packed", 3) == expected);
  CHECK_THROWS_WITH(gpunn::data::sha256_of_unpacked(folder / "packed", 4),
                    Contains("expected 4 bytes unpacked, found 3"));
  CHECK(gpunn::data::sha256_of_file(folder / "plain", 3) == expected);
  CHECK(gpunn::data::sha256_of_file(folder / "packed", gzip("abc").size()) != expected);
  CHECK_THROWS_WITH(gpunn::data::sha256_of_file(folder / "packed", 3), Contains("more than the 3 bytes expected"));
  write_file(folder / "bomb", gzip(std::string(std::size_t{32} << 20, '\0')));
  CHECK_THROWS_WITH(gpunn::data::sha256_of_unpacked(folder / "bomb", 3),
                    Contains("more than the 3 bytes expected unpacked"));
}

TEST_CASE("a file is fetched, checked, and not fetched again") {
  if (skipped()) return;
  Fixture f;
  const HttpServer server({{"data/x.gz", {f.packed}}, {"moved/x.gz", {.redirect = "/data/x.gz"}}});
  f.job.mirrors = {server.url() + "moved/"};
  download_files(f.job);
  f.check_arrived();
  CHECK(server.requests() == std::vector<std::string>{"moved/x.gz", "data/x.gz"});
  download_files(f.job);
  CHECK(server.requests().size() == 2);

  SECTION("unless it is damaged") {
    test::fs::resize_file(f.file, 1000);
    download_files(f.job);
    f.check_arrived();
    CHECK(server.requests().size() == 4);
  }
}

TEST_CASE("a mirror that is dead, or lacks the file, is passed over") {
  if (skipped()) return;
  Fixture f;
  HttpServer dead({});
  const HttpServer empty({}), good({{"x.gz", {f.packed}}});
  dead.stop();
  f.job.mirrors = {dead.url(), empty.url(), good.url()};
  download_files(f.job);
  f.check_arrived();
  CHECK(empty.requests() == std::vector<std::string>{"x.gz"});

  f.job.mirrors = {dead.url(), empty.url()};
  test::fs::remove(f.file);
  CHECK(test::code_of([&] { download_files(f.job); }) == gpunn::ExitCode::missing);
  CHECK_THROWS_WITH(download_files(f.job), Contains("no mirror gives x.gz") && Contains(dead.url() + "x.gz: ") &&
                                               Contains("onnect") && Contains(empty.url() + "x.gz: ") &&
                                               Contains("404"));
}

TEST_CASE("a download that broke is taken up where it broke") {
  if (skipped()) return;
  Fixture f;
  const std::size_t cut = f.packed.size() / 2 + 100;
  SECTION("by the same mirror") {
    const HttpServer server({{"x.gz", {.body = f.packed, .cut_after = cut}}});
    f.job.mirrors = {server.url()};
    download_files(f.job);
    f.check_arrived();
    CHECK(server.requests() == std::vector<std::string>{"x.gz", "x.gz bytes=" + std::to_string(cut) + "-"});
  }
  SECTION("by a later start of the program") {
    write_file(f.part, f.packed.substr(0, cut));
    const HttpServer server({{"x.gz", {f.packed}}});
    f.job.mirrors = {server.url()};
    download_files(f.job);
    f.check_arrived();
    CHECK(server.requests() == std::vector<std::string>{"x.gz bytes=" + std::to_string(cut) + "-"});
  }
  SECTION("from a server that ignores ranges: from the beginning") {
    write_file(f.part, f.packed.substr(0, cut));
    const HttpServer server({{"x.gz", {.body = f.packed, .ranges = false}}});
    f.job.mirrors = {server.url()};
    download_files(f.job);
    f.check_arrived();
    CHECK(server.requests().size() == 1);
  }
  SECTION("with nothing left to fetch") {
    write_file(f.part, f.packed);
    const HttpServer server({{"x.gz", {f.packed}}});
    f.job.mirrors = {server.url()};
    download_files(f.job);
    f.check_arrived();
  }
  SECTION("after a beginning that belongs to something else: once more from the beginning") {
    write_file(f.part, test::counting_bytes(cut));
    const HttpServer server({{"x.gz", {f.packed}}});
    f.job.mirrors = {server.url()};
    download_files(f.job);
    f.check_arrived();
    CHECK(server.requests().size() == 2);
  }
  SECTION("not for ever") {
    const HttpServer server({{"x.gz", {.body = f.packed, .cut_after = 1000}}});
    f.job.mirrors = {server.url()};
    CHECK_THROWS_WITH(download_files(f.job), Contains("no mirror gives x.gz"));
    CHECK(server.requests().size() == 4);
    CHECK(test::fs::file_size(f.part) == 4000);
  }
}

TEST_CASE("what a mirror gives is not believed without its digest") {
  if (skipped()) return;
  Fixture f;
  std::string other = f.content;
  other[1234] ^= 1;
  const std::vector<std::string> lies = {gzip(other),
                                         "<html>please log in</html>",
                                         f.packed.substr(0, f.packed.size() - 20),
                                         f.packed.substr(0, 1000),
                                         gzip(std::string(std::size_t{32} << 20, '\0')),
                                         ""};
  const std::string& bad = lies[GENERATE(0U, 1U, 2U, 3U, 4U, 5U)];
  HttpServer liar({{"x.gz", {bad}}});
  const HttpServer good({{"x.gz", {f.packed}}});
  f.job.mirrors = {liar.url()};
  CHECK_THROWS_WITH(download_files(f.job), Contains(liar.url()));
  CHECK(!test::fs::exists(f.file));
  CHECK((!test::fs::exists(f.part) || test::fs::file_size(f.part) == 0));
  f.job.mirrors = {liar.url(), good.url()};
  download_files(f.job);
  f.check_arrived();
}

TEST_CASE("a wrong digest is told with both") {
  if (skipped()) return;
  Fixture f;
  std::string other = f.content;
  other[1234] ^= 1;
  const HttpServer liar({{"x.gz", {gzip(other)}}});
  f.job.mirrors = {liar.url()};
  CHECK_THROWS_WITH(download_files(f.job), Contains("SHA-256 " + f.job.files[0].sha256 + " expected"));
}

TEST_CASE("a mirror that sends without end, or not at all, is given up") {
  if (skipped()) return;
  Fixture f;
  SECTION("more than the file can be") {
    const HttpServer server({{"x.gz", {f.packed + std::string(1 << 20, 'x')}}});
    f.job.mirrors = {server.url()};
    CHECK_THROWS_WITH(download_files(f.job), Contains("the server sends more than the 365536 bytes"));
    CHECK(!test::fs::exists(f.part));
  }
  SECTION("a connection that goes quiet") {
    const HttpServer quiet({{"x.gz", {.body = f.packed, .cut_after = 1000, .stall = true}}});
    const HttpServer good({{"x.gz", {f.packed}}});
    f.job.mirrors = {quiet.url(), good.url()};
    f.job.files[0].name = "x.gz";
    download_files(f.job);
    f.check_arrived();
  }
}

TEST_CASE("a callback that throws stops the download and its exception comes out") {
  if (skipped()) return;
  Fixture f;
  const HttpServer server({{"x.gz", {f.packed}}});
  gpunn::data::HttpRequest request{.url = server.url() + "x.gz",
                                   .file = f.folder / "x",
                                   .most_bytes = 1 << 20,
                                   .limits = f.job.limits,
                                   .progress = {}};
  request.progress = [](uint64_t, uint64_t) { throw gpunn::Error("stop it"); };
  CHECK_THROWS_WITH(gpunn::data::http_fetch(request), Contains("stop it"));
}

TEST_CASE("a download tells how far it is, and so does the file's unpacking") {
  if (skipped()) return;
  Fixture f;
  std::vector<gpunn::WorkReport> halfway;
  const auto look = [&halfway] {
    // The client may still be at what was sent.
    for (int i = 0; i < 200 && (halfway.empty() || halfway.front().done == 0); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      halfway = gpunn::long_work();
    }
  };
  const HttpServer server({{"x.gz", {.body = f.packed, .halfway = look}}});
  f.job.mirrors = {server.url()};
  download_files(f.job);
  REQUIRE(halfway.size() == 1);
  CHECK(halfway[0].what == "downloading x.gz");
  CHECK(halfway[0].unit == gpunn::WorkUnit::bytes);
  CHECK((halfway[0].done > 0 && halfway[0].done <= f.packed.size() / 2));
  CHECK(halfway[0].total == f.packed.size());
  CHECK(gpunn::long_work().empty());

  gpunn::data::UnpackingReader reader(f.file);
  std::vector<std::byte> some(1000);
  reader.read(some);
  const std::vector<gpunn::WorkReport> unpacking = gpunn::long_work();
  REQUIRE(unpacking.size() == 1);
  CHECK(unpacking[0].what == "reading x.gz");
  CHECK((unpacking[0].done > 0 && unpacking[0].total == f.packed.size()));
}

TEST_CASE("a folder that can't be written is told") {
  if (skipped()) return;
  Fixture f;
  write_file(f.folder / "file", "x");
  f.job.folder = f.folder / "file/set";
  f.job.mirrors = {"http://127.0.0.1:9/"};
  CHECK_THROWS_WITH(download_files(f.job), Contains("can't make the folder"));
  f.job.folder = f.folder / "set2";
  f.job.mirrors = {"file://" + f.folder.path().string() + "/"};
  CHECK_THROWS_WITH(download_files(f.job), Contains("no mirror gives"));  // only http and https
}

TEST_CASE("an archive is judged by the digest of the file as it is") {
  if (skipped()) return;
  Fixture f;
  write_file(f.folder / "as it is", f.packed);
  f.job.files.front().bytes = f.packed.size();
  f.job.files.front().sha256 = gpunn::data::sha256_of_file(f.folder / "as it is", f.packed.size());
  f.job.files.front().digest = gpunn::data::RemoteFile::Digest::of_file;
  const HttpServer server({{"other/x.gz", {gzip(f.content, 1)}}, {"data/x.gz", {f.packed}}});
  f.job.mirrors = {server.url() + "other/", server.url() + "data/"};  // the first has it packed in another way
  download_files(f.job);
  f.check_arrived();
}
