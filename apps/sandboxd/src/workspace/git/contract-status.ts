import type { Change, StatusEntry } from './status-parser.ts'

/** How the contract says what became of a file: conflict, deleted, added, modified, untracked. */
export type ContractStatus = 'C' | 'D' | 'A' | 'M' | 'U'

/** The one that counts when a path has two. */
const PRIORITY: Readonly<Record<ContractStatus, number>> = { C: 5, D: 4, A: 3, M: 2, U: 1 }

const OF_CHANGE: Readonly<Record<Change, ContractStatus>> = { M: 'M', T: 'M', A: 'A', D: 'D', R: 'M', C: 'A' }

function statusOf(entry: StatusEntry): ContractStatus {
  switch (entry.kind) {
    case 'conflict':
      return 'C'
    case 'untracked':
      return 'U'
    case 'changed':
      return OF_CHANGE[entry.staged ?? entry.unstaged ?? 'M']
  }
}

/** Files by path, as the contract has them. */
export function toContractFiles(entries: readonly StatusEntry[]): ReadonlyMap<string, ContractStatus> {
  const files = new Map<string, ContractStatus>()
  for (const entry of entries) {
    const status = statusOf(entry)
    const known = files.get(entry.path)
    if (known === undefined || PRIORITY[status] > PRIORITY[known]) files.set(entry.path, status)
  }
  return files
}
