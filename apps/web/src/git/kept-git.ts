/** What somebody unfolded for a repository. */
export interface KeptGit {
  areBranchesOpen: boolean
  isLogOpen: boolean
}
