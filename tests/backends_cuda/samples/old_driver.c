/* Stands in for libcuda.so.1 of an old driver: knows its version, and nothing else that a newer runtime asks for. */
int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}

int cuInit(unsigned flags) {
  (void)flags;
  return 0;
}
