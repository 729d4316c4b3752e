/* A library that importers call; NUMBER tells its copies apart. */
int lpt_make(int x) { return x + NUMBER; }
