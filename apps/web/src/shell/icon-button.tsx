import type { ReactElement } from 'react'
import { Icon, type IconName } from './icon.tsx'

/** A button that is only a picture, with its name for everybody who does not see it. */
export function IconButton({
  icon,
  label,
  onClick,
  isPressed,
  isDisabled = false,
}: {
  readonly icon: IconName
  readonly label: string
  readonly onClick: () => void
  readonly isPressed?: boolean
  readonly isDisabled?: boolean
}): ReactElement {
  return (
    <button
      type="button"
      className="icon-button"
      title={label}
      aria-label={label}
      aria-pressed={isPressed}
      disabled={isDisabled}
      onClick={(event) => {
        event.stopPropagation()
        onClick()
      }}
    >
      <Icon name={icon} />
    </button>
  )
}
