import type { ReactNode } from 'react'

// Icons are decoration: what they stand beside, or an aria-label, says the same.
function Icon({ children }: { children: ReactNode }) {
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 16 16"
      className="size-4 shrink-0"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      {children}
    </svg>
  )
}

export const PlusIcon = () => (
  <Icon>
    <path d="M8 3v10M3 8h10" />
  </Icon>
)
export const SearchIcon = () => (
  <Icon>
    <circle cx="7" cy="7" r="4" />
    <path d="m10 10 3.5 3.5" />
  </Icon>
)
export const MenuIcon = () => (
  <Icon>
    <path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" />
  </Icon>
)
export const CloseIcon = () => (
  <Icon>
    <path d="m4 4 8 8M12 4l-8 8" />
  </Icon>
)
export const MoreIcon = () => (
  <Icon>
    <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" strokeWidth="2.5" />
  </Icon>
)
export const AgentsIcon = () => (
  <Icon>
    <rect x="3" y="5" width="10" height="8" rx="2" />
    <path d="M8 5V2.5M6 9h.01M10 9h.01" />
  </Icon>
)
export const ApprovalsIcon = () => (
  <Icon>
    <path d="M8 2 3 4v4c0 3 2.2 5 5 6 2.8-1 5-3 5-6V4z" />
    <path d="m6 8 1.5 1.5L10.5 6.5" />
  </Icon>
)
export const RunsIcon = () => (
  <Icon>
    <path d="M2.5 4h5M5 8h6M8.5 12h5" />
  </Icon>
)
export const SettingsIcon = () => (
  <Icon>
    <path d="M2.5 5h7M13 5h.5M2.5 11H4M7.5 11h6" />
    <circle cx="11" cy="5" r="1.5" />
    <circle cx="5.5" cy="11" r="1.5" />
  </Icon>
)
export const ThemeIcon = () => (
  <Icon>
    <circle cx="8" cy="8" r="5.5" />
    <path d="M8 2.5v11a5.5 5.5 0 0 0 0-11" fill="currentColor" />
  </Icon>
)
export const KeyboardIcon = () => (
  <Icon>
    <rect x="1.5" y="4" width="13" height="8" rx="1.5" />
    <path d="M4 7h.01M7 7h.01M10 7h.01M5 9.5h6" />
  </Icon>
)
