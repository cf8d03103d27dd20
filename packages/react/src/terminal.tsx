import '@xterm/xterm/css/xterm.css'
import type { AttachRequest } from '@sandwire/client'
import type { ClientStatus, Exit, SandwireError } from '@sandwire/protocol'
import { type CSSProperties, type ReactElement, useEffect, useRef, useState } from 'react'
import { latestOptions } from './latest-options.ts'
import { DEFAULT_APPEARANCE } from './terminal/appearance.ts'
import { TerminalController, type TerminalOptions, type TerminalState } from './terminal/controller.ts'

/** What is said of a terminal and how it is shown, whoever made it. */
interface CommonTerminalProps {
  readonly onExit?: (exit: Exit) => void
  readonly onError?: (error: SandwireError) => void
  readonly onState?: (state: TerminalState) => void
  /** Say over the screen what is wrong with the connection, as long as something is; default true. */
  readonly showsProblem?: boolean
  readonly className?: string
  readonly style?: CSSProperties
}

/** A terminal that the component makes, and that goes with it. */
export interface OwnTerminalProps
  extends CommonTerminalProps, Omit<TerminalOptions, 'request'>, Omit<AttachRequest, 'mode'> {
  readonly controller?: undefined
}

/** A terminal that outlives the component, and has options of its own. */
interface ControlledTerminalProps extends CommonTerminalProps {
  readonly controller: TerminalController
}

export type TerminalProps = OwnTerminalProps | ControlledTerminalProps

/**
 * What a terminal says of its connection over its screen; undefined: nothing. `before` is what it said last: what went wrong is not
 * forgotten while it tries again.
 */
export function connectionProblem(status: ClientStatus, before: string | undefined): string | undefined {
  switch (status.is) {
    case 'connecting':
      return status.attempt === 1 ? 'Connecting…' : before
    case 'reconnecting':
      return `${status.why}. Reconnecting…`
    case 'failed':
      return `Disconnected. ${status.error.message}.`
    case 'attached':
    case 'exited':
    case 'detached':
      return undefined
  }
}

const FULL_SIZE: CSSProperties = { width: '100%', height: '100%' }
/** Colors of their own: what is below can be of any. */
const PROBLEM_STYLE: CSSProperties = {
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
  const [problem, setProblem] = useState<string>()

  useEffect(() => {
    const container = element.current
    if (container === null) return undefined
    const first = latest.current
    const controller = first.controller ?? createController(first, latest)
    if (first.controller === undefined) made.current = controller
    let last = controller.state.get().status
    setProblem((before) => connectionProblem(last, before))
    const stop = controller.state.subscribe((state) => {
      const { onState, onExit, onError } = latest.current
      onState?.(state)
      if (state.status === last) return
      last = state.status
      setProblem((before) => connectionProblem(state.status, before))
      if (last.is === 'exited') onExit?.(last.exit)
      if (last.is === 'failed') onError?.(last.error)
    })
    controller.mount(container)
    return () => {
      stop()
      made.current?.dispose()
      made.current = undefined
    }
  }, [props.controller])

  // By what it says: whoever draws often gives the same appearance as another object each time.
  const appearance = props.controller === undefined ? JSON.stringify(props.appearance) : undefined
  useEffect(() => {
    const { current } = latest
    if (current.controller === undefined)
      made.current?.surface.setAppearance({ ...DEFAULT_APPEARANCE, ...current.appearance })
  }, [appearance])

  const { className, style, showsProblem = true } = props
  return (
    <div className={className} style={{ ...FULL_SIZE, position: 'relative', ...style }}>
      <div ref={element} style={FULL_SIZE} />
      {showsProblem && problem !== undefined && (
        <div role="status" style={PROBLEM_STYLE}>
          {problem}
        </div>
      )}
    </div>
  )
}
