/* Which files of /dev/shm this process makes, and on which line: nothing in such a file says it, and other processes of
 * the same user make some too.  Import slots of shm_open() and open() are patched for as long as it is asked for; what
 * crosses no slot is not seen. */
#ifndef LP_HOOK_NAMES_H
#define LP_HOOK_NAMES_H

#include "base/base.h" // lp_status
#include "ledger/site.h" // lp_site_id

/* Patch what is loaded, again each time.  LP_UNSUPPORTED off Linux. */
lp_status lp_names_begin(void);
/* Put back the slots; what is known stays.  How many are left below another tool. */
size_t lp_names_end(void);

/* For a listing of /dev/shm, with the GIL: learn what was made before it, ask for each file, and forget the files that
 * were not asked for. */
void lp_names_learn(void);
/* 1 if the file was made here. */
int lp_names_find(uint64_t inode, lp_site_id *out_site);
void lp_names_forget_rest(void);

#endif
