import { useEffect } from 'react'
import { usePanelMemory } from '../panels/panel-memory.ts'
import { useParts } from '../state/context.ts'
import { KeptTree } from './kept-tree.ts'

/** The tree of a sandbox as it was left, which follows what changes while it is shown. */
export function useTree(sandbox: string): KeptTree {
  const { watch } = useParts()
  const kept = usePanelMemory().trees.recall(sandbox, () => new KeptTree(sandbox))
  const { tree } = kept
  useEffect(() => {
    void tree.look()
    const stop = watch.subscribe(sandbox, (event) => void tree.follow(event))
    return () => {
      stop()
      tree.rest()
    }
  }, [tree, watch, sandbox])
  return kept
}
