import type { AttachRequest } from '@sandwire/client'
import type { Exit, SandwireError } from '@sandwire/protocol'
import type { CSSProperties } from 'react'
import type { TerminalController, TerminalOptions, TerminalState } from './terminal/controller.ts'

/** What is said of a terminal and how it is shown, whoever made it. */
interface ShownProps {
  readonly onExit?: (exit: Exit) => void
  readonly onError?: (error: SandwireError) => void
  readonly onState?: (state: TerminalState) => void
  /** Say over the screen what is wrong with the connection, as long as something is; default true. */
  readonly showsTrouble?: boolean
  readonly className?: string
  readonly style?: CSSProperties
}

/** A terminal that the component makes, and that goes with it. */
export interface OwnTerminalProps
  extends ShownProps, Omit<TerminalOptions, 'request'>, Omit<AttachRequest, 'mode'> {
  readonly controller?: undefined
}

/** A terminal that outlives the component, and has options of its own. */
interface GivenTerminalProps extends ShownProps {
  readonly controller: TerminalController
}

export type TerminalProps = OwnTerminalProps | GivenTerminalProps
