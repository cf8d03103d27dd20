import type { GitPlace } from '../api/git.ts'
import { ROOT } from '../files/paths.ts'
import type { View } from '../layout/layout.ts'

type DiffView = Extract<View, { kind: 'diff' }>

/** What a pane needs to show a difference in a repository. */
export function diffView(
  { sandbox, repo }: GitPlace,
  what: Pick<DiffView, 'path' | 'of'> & { readonly from: string | undefined },
): DiffView {
  const { path, of, from } = what
  return {
    kind: 'diff',
    sandbox,
    path,
    of,
    ...(repo === ROOT ? {} : { repo }),
    ...(from === undefined ? {} : { from }),
  }
}
