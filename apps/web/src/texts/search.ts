import { plural } from './counts.ts'

/** Texts of the search panel. */
export const searchTexts = {
  title: 'Search',
  query: 'Search in files',
  include: 'Files to include',
  includePlaceholder: 'Files to include, e.g. *.ts, src/**, !*.test.ts',
  regex: 'Regular expression',
  matchCase: 'Match case',
  all: 'Search all files, also hidden and ignored ones',
  searching: 'Searching…',
  soFar: (count: number) => `Searching… ${plural(count, 'result')} so far`,
  none: 'No results',
  results: (count: number, files: number) => `${plural(count, 'result')} in ${plural(files, 'file')}`,
  moreNotShown: ', more not shown',
} as const
