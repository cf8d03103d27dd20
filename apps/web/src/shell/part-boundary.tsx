import { Component, type ReactNode } from 'react'

interface State {
  readonly hasFailed: boolean
}

/**
 * Keeps a part of the page that cannot be drawn from taking the others with it. Most often it belongs to a version that is no longer
 * served, which a reload mends: what is open comes back.
 */
export class PartBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { hasFailed: false }

  static getDerivedStateFromError(): State {
    return { hasFailed: true }
  }

  override render(): ReactNode {
    if (!this.state.hasFailed) return this.props.children
    return (
      <div className="empty" role="alert">
        <p>This part of the page could not be loaded. There may be a new version.</p>
        <button type="button" onClick={() => location.reload()}>
          Reload the page
        </button>
      </div>
    )
  }
}
