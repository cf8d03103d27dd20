import { Terminal, type TerminalController, useStore } from '@sandwire/react'
import {
  type PointerEvent as ReactPointerEvent,
  type ReactElement,
  useCallback,
  useEffect,
  useRef,
  useState,
} from 'react'
import type { TmuxAction, TmuxWindow } from '../api/tmux.ts'
import { ParticipantBar } from '../sharing/participant-bar.tsx'
import { useParts } from '../state/context.ts'
import { tmuxTexts } from '../texts/tmux.ts'
import { type Border, bordersOf, panesIn } from './borders.ts'
import { displayTitle } from '../files/display-name.ts'

interface WindowPanesProps {
  readonly viewId: string
  readonly sandbox: string
  readonly window: TmuxWindow
  readonly isFocused: boolean
  readonly act: (action: TmuxAction) => void
}

/** Size of a character in pixels. */
interface Cell {
  readonly width: number
  readonly height: number
}

/** A resize by the browser window is sent when it pauses. */
const SETTLE_MS = 120

/** The panes of a window where tmux has them, with borders that can be moved. */
export function WindowPanes({ viewId, sandbox, window, isFocused, act }: WindowPanesProps): ReactElement {
  const { terminals } = useParts()
  const { layout, panes } = window
  const box = useRef<HTMLDivElement>(null)
  const cells = panesIn(layout)
  const { activeId, select } = useActivePane(window, act)
  const controllerOf = (pane: string): TerminalController => {
    const { cols, rows } = cells.find((cell) => cell.pane === pane) ?? layout
    return terminals.ofPane(viewId, { sandbox, pane, size: { cols, rows } })
  }
  const active = controllerOf(activeId)
  const cell = useCell(active)
  useWindowSize(box.current, cell, window, act)
  useEffect(() => {
    terminals.keepPanes(
      viewId,
      cells.map(({ pane }) => pane),
    )
    if (isFocused) active.surface.focus()
  }, [terminals, viewId, active, isFocused, cells.map(({ pane }) => pane).join()])
  const { width, height } = cell ?? { width: 0, height: 0 }
  return (
    <>
      <ParticipantBar controller={active} />
      {panes.find(({ id }) => id === activeId)?.isInMode === true && (
        <div className="banner notice-line">{tmuxTexts.scrolling}</div>
      )}
      <div ref={box} className="tmux-panes">
        {cells.map(({ pane, left, top, cols, rows }) => (
          <div
            key={pane}
            className={`tmux-pane ${pane === activeId && cells.length > 1 ? 'active' : ''}`}
            data-pane={pane}
            role="group"
            aria-label={displayTitle(panes.find(({ id }) => id === pane)?.title ?? pane)}
            style={
              cell === undefined
                ? { inset: 0, visibility: 'hidden' }
                : { left: left * width, top: top * height, width: cols * width, height: rows * height }
            }
            // Not by focus, which the page also moves itself.
            onPointerDownCapture={() => select(pane)}
            onKeyDownCapture={() => select(pane)}
          >
            <Terminal controller={controllerOf(pane)} showsProblem={false} className="terminal-surface" />
          </div>
        ))}
        {cell !== undefined &&
          bordersOf(layout).map((border) => (
            <BorderHandle
              key={`${border.direction} ${border.left} ${border.top}`}
              border={border}
              cell={cell}
              act={act}
            />
          ))}
      </div>
    </>
  )
}

/** How long a pane that was selected here counts as active, whatever tmux reports. */
const SELECTED_MS = 1_000

/**
 * The active pane, and a way to select another. A selection counts at once: reports of tmux are late, and one about the selection
 * before would move the keyboard to another pane while the user types.
 */
function useActivePane(
  { layout, panes }: TmuxWindow,
  act: (action: TmuxAction) => void,
): { readonly activeId: string; readonly select: (pane: string) => void } {
  const ids = panesIn(layout).map(({ pane }) => pane)
  const reported = panes.find(({ isActive }) => isActive)?.id ?? ids[0] ?? ''
  const [selected, setSelected] = useState<string>()
  const activeId = selected !== undefined && ids.includes(selected) ? selected : reported
  useEffect(() => {
    const timer = setTimeout(() => setSelected(undefined), SELECTED_MS)
    return () => clearTimeout(timer)
  }, [selected])
  // A new pane is active once it is there.
  useEffect(() => setSelected(undefined), [ids.join()])
  const select = (pane: string): void => {
    if (pane === activeId) return
    setSelected(pane)
    act({ type: 'select_pane', pane })
  }
  return { activeId, select }
}

/** Frames for which the size has to stay the same: a first drawing, or another font, takes some. */
const STABLE_FRAMES = 10

/** The size of a character, once the terminal has been drawn. */
function useCell(controller: TerminalController): Cell | undefined {
  const { workbench } = useParts()
  const { fontSize, fontFamily } = useStore(workbench.settings)
  const [cell, setCell] = useState<Cell>()
  useEffect(() => {
    let frame = 0
    let last: Cell | undefined
    let stable = 0
    const measure = (): void => {
      const now = controller.surface.cellSize
      const isSame = now?.width === last?.width && now?.height === last?.height
      stable = now !== undefined && isSame ? stable + 1 : 0
      last = now
      if (stable < STABLE_FRAMES) frame = requestAnimationFrame(measure)
      else setCell(now)
    }
    measure()
    return () => cancelAnimationFrame(frame)
  }, [controller, fontSize, fontFamily])
  return cell
}

/** Tells tmux how large the window may be here: at first, and when the space changes. The last client decides. */
function useWindowSize(
  element: HTMLElement | null,
  cell: Cell | undefined,
  { id, layout }: TmuxWindow,
  act: (action: TmuxAction) => void,
): void {
  const latest = useRef({ layout, act })
  latest.current = { layout, act }
  const send = useCallback(
    (box: { readonly width: number; readonly height: number }): void => {
      if (cell === undefined) return
      const cols = Math.floor(box.width / cell.width)
      const rows = Math.floor(box.height / cell.height)
      const { layout: now } = latest.current
      if (cols < 2 || rows < 2 || (cols === now.cols && rows === now.rows)) return
      latest.current.act({ type: 'resize_window', window: id, cols, rows })
    },
    [cell, id],
  )
  useEffect(() => {
    if (element === null) return undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    const observer = new ResizeObserver(([entry]) => {
      clearTimeout(timer)
      const { contentRect } = entry ?? {}
      if (contentRect !== undefined) timer = setTimeout(() => send(contentRect), SETTLE_MS)
    })
    observer.observe(element)
    return () => {
      clearTimeout(timer)
      observer.disconnect()
    }
  }, [element, send])
}

const MAX_SIDE = 1_000

function BorderHandle({
  border: { direction, left, top, length, pane, size },
  cell,
  act,
}: {
  readonly border: Border
  readonly cell: Cell
  readonly act: (action: TmuxAction) => void
}): ReactElement {
  const isRow = direction === 'row'
  /** Where the drag began, and the last size that was requested. */
  const drag = useRef<{ readonly from: number; requested: number }>(undefined)
  const resize = (wanted: number): void => {
    const next = Math.min(MAX_SIDE, Math.max(1, Math.round(wanted)))
    if (next !== size) act({ type: 'resize_pane', pane, [isRow ? 'cols' : 'rows']: next })
  }
  const move = (event: ReactPointerEvent): void => {
    const { current } = drag
    if (current === undefined) return
    const pixels = (isRow ? event.clientX : event.clientY) - current.from
    const wanted = Math.round(size + pixels / (isRow ? cell.width : cell.height))
    if (wanted === current.requested) return
    drag.current = { ...current, requested: wanted }
  }
  const [less, more] = isRow ? ['ArrowLeft', 'ArrowRight'] : ['ArrowUp', 'ArrowDown']
  return (
    <div
      className={`tmux-border ${direction}`}
      role="separator"
      tabIndex={0}
      aria-label={tmuxTexts.resize}
      aria-orientation={isRow ? 'vertical' : 'horizontal'}
      aria-valuenow={size}
      aria-valuemin={1}
      aria-valuemax={MAX_SIDE}
      style={{
        left: left * cell.width,
        top: top * cell.height,
        width: (isRow ? 1 : length) * cell.width,
        height: (isRow ? length : 1) * cell.height,
      }}
      onPointerDown={(event) => {
        event.preventDefault()
        event.currentTarget.setPointerCapture(event.pointerId)
        drag.current = { from: isRow ? event.clientX : event.clientY, requested: size }
      }}
      onPointerMove={move}
      onPointerUp={() => {
        const { requested } = drag.current ?? { requested: size }
        drag.current = undefined
        resize(requested)
      }}
      onKeyDown={(event) => {
        if (event.key === less) resize(size - 1)
        if (event.key === more) resize(size + 1)
      }}
    />
  )
}
