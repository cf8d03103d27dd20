import { type PointerEvent as ReactPointerEvent, type ReactElement, type ReactNode, useRef } from 'react'
import { boundShare, type PaneTree } from '../layout/pane-tree.ts'
import { shellTexts } from '../texts/shell.ts'

/** Share by which an arrow key moves a border. */
const KEY_STEP = 0.02

/** Renders a tree of panes with movable borders. */
export function Panes({
  tree,
  draw,
  onResize,
}: {
  readonly tree: PaneTree
  readonly draw: (id: string) => ReactNode
  readonly onResize: (split: string, share: number) => void
}): ReactElement {
  const element = useRef<HTMLDivElement>(null)
  if (tree.kind === 'leaf') return <div className="pane">{draw(tree.id)}</div>
  const { id, direction, share, first, second } = tree
  const resize = (wanted: number): void => {
    const box = element.current?.getBoundingClientRect()
    if (box === undefined) return
    onResize(id, boundShare(tree, wanted, direction === 'row' ? box.width : box.height))
  }
  const drag = (event: ReactPointerEvent<HTMLDivElement>): void => {
    const box = element.current?.getBoundingClientRect()
    if (box === undefined || !event.currentTarget.hasPointerCapture(event.pointerId)) return
    resize(
      direction === 'row' ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height,
    )
  }
  const [less, more] = direction === 'row' ? ['ArrowLeft', 'ArrowRight'] : ['ArrowUp', 'ArrowDown']
  return (
    <div ref={element} className={`split split-${direction}`}>
      <div className="split-part" style={{ flexGrow: share }}>
        <Panes tree={first} draw={draw} onResize={onResize} />
      </div>
      <div
        className="split-border"
        role="separator"
        tabIndex={0}
        aria-label={shellTexts.panes.resize}
        aria-orientation={direction === 'row' ? 'vertical' : 'horizontal'}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={10}
        aria-valuemax={90}
        onPointerDown={(event) => {
          // Dragging keeps the focus where it is; keyboard users focus the border.
          event.preventDefault()
          event.currentTarget.setPointerCapture(event.pointerId)
        }}
        onMouseDown={(event) => event.preventDefault()}
        onPointerMove={drag}
        onDoubleClick={() => resize(0.5)}
        onKeyDown={(event) => {
          if (event.key === less) resize(share - KEY_STEP)
          if (event.key === more) resize(share + KEY_STEP)
        }}
      />
      <div className="split-part" style={{ flexGrow: 1 - share }}>
        <Panes tree={second} draw={draw} onResize={onResize} />
      </div>
    </div>
  )
}
