import '@xterm/xterm/css/xterm.css'
import { type CSSProperties, type ReactElement, useEffect, useRef, useState } from 'react'
import { latestOptions } from './latest-options.ts'
import { TerminalController } from './terminal/controller.ts'
import { DEFAULT_LOOK } from './terminal/look.ts'
import type { OwnTerminalProps, TerminalProps } from './terminal-props.ts'
import { troubleOf } from './trouble.ts'

const WHOLE: CSSProperties = { width: '100%', height: '100%' }
/** Colors of their own: what is below can be of any. */
const TROUBLE: CSSProperties = {
  position: 'absolute',
  inset: '0 0 auto',
  zIndex: 10,
  padding: '6px 10px',
  background: '#2b2f38',
  color: '#f2f4f8',
  font: '13px/1.45 system-ui, sans-serif',
  overflowWrap: 'anywhere',
}

/** Makes a terminal that asks and tells whom its component was given last. */
function createController(
  first: OwnTerminalProps,
  latest: { readonly current: TerminalProps },
): TerminalController {
  // A component that is given a terminal says nothing any more of the one that it made.
  return new TerminalController(
    latestOptions(() => (latest.current.controller === undefined ? latest.current : first)),
  )
}

/**
 * A terminal in a sandbox. It connects when it is first shown; what it is to attach to is read then, so another session is another
 * `key`. It takes the size of its element.
 */
export function Terminal(props: TerminalProps): ReactElement {
  const element = useRef<HTMLDivElement>(null)
  const latest = useRef(props)
  latest.current = props
  const made = useRef<TerminalController>(undefined)
  const [trouble, setTrouble] = useState<string>()

  useEffect(() => {
    const place = element.current
    if (place === null) return undefined
    const first = latest.current
    const controller = first.controller ?? createController(first, latest)
    if (first.controller === undefined) made.current = controller
    let last = controller.state.get().status
    setTrouble((before) => troubleOf(last, before))
    const stop = controller.state.subscribe((state) => {
      const { onState, onExit, onError } = latest.current
      onState?.(state)
      if (state.status === last) return
      last = state.status
      setTrouble((before) => troubleOf(state.status, before))
      if (last.is === 'exited') onExit?.(last.exit)
      if (last.is === 'failed') onError?.(last.error)
    })
    controller.mount(place)
    return () => {
      stop()
      made.current?.dispose()
      made.current = undefined
    }
  }, [props.controller])

  // By what it says: whoever draws often gives the same look as another object each time.
  const look = props.controller === undefined ? JSON.stringify(props.look) : undefined
  useEffect(() => {
    const { current } = latest
    if (current.controller === undefined) made.current?.surface.setLook({ ...DEFAULT_LOOK, ...current.look })
  }, [look])

  const { className, style, showsTrouble = true } = props
  return (
    <div className={className} style={{ ...WHOLE, position: 'relative', ...style }}>
      <div ref={element} style={WHOLE} />
      {showsTrouble && trouble !== undefined && (
        <div role="status" style={TROUBLE}>
          {trouble}
        </div>
      )}
    </div>
  )
}
