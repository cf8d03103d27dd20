import { FileTree } from './file-tree.ts'

/** The tree of a sandbox as it was left: which folders are open, what was chosen, and how far it was scrolled. */
export class KeptTree {
  readonly tree: FileTree
  selected: { readonly path: string; readonly isFolder: boolean } | undefined
  scrollPx = 0
  /** What is to have the keyboard as soon as it is there. */
  wantsKeyboard: string | undefined

  constructor(sandbox: string) {
    this.tree = FileTree.of(sandbox)
  }
}
