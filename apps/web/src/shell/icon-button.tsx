import type { ReactElement } from 'react'
import { Icon, type IconName } from './icon.tsx'

/** A button that is only a picture, with its name for everybody who does not see it. */
export function IconButton({
  icon,
  label,
  onClick,
  isPressed,
  isDisabled = false,
  isMouseOnly = false,
}: {
  readonly icon: IconName
  readonly label: string
  readonly onClick: () => void
  readonly isPressed?: boolean
  readonly isDisabled?: boolean
  /** The keyboard has another way to it. */
  readonly isMouseOnly?: boolean
}): ReactElement {
  return (
    <button
      type="button"
      className="icon-button"
      title={label}
      aria-label={label}
      aria-pressed={isPressed}
      disabled={isDisabled}
      tabIndex={isMouseOnly ? -1 : undefined}
      onClick={(event) => {
        event.stopPropagation()
        onClick()
      }}
    >
      <Icon name={icon} />
    </button>
  )
}
