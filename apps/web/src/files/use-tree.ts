import { useEffect, useMemo } from 'react'
import { useParts } from '../state/context.ts'
import { FileTree } from './file-tree.ts'
import { ROOT } from './paths.ts'

/** The tree of a sandbox, which follows what changes while it is shown. */
export function useTree(sandbox: string): FileTree {
  const { watch } = useParts()
  const tree = useMemo(() => FileTree.of(sandbox), [sandbox])
  useEffect(() => {
    void tree.load(ROOT)
    return watch.subscribe(sandbox, (event) => void tree.follow(event))
  }, [tree, watch, sandbox])
  return tree
}
