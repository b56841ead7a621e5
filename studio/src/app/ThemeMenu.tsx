import { useEffect, useState } from "react";

import { text } from "../text/index.ts";

type Theme = keyof typeof text.common.themes;

export function ThemeMenu() {
  const [theme, setTheme] = useState<Theme>(
    () => (localStorage.getItem("theme") as Theme | null) ?? "system",
  );
  useEffect(() => {
    localStorage.setItem("theme", theme);
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  return (
    <label>
      <span className="visually-hidden">{text.common.theme}</span>
      <select className="input" value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
        {(Object.keys(text.common.themes) as Theme[]).map((name) => (
          <option key={name} value={name}>
            {text.common.themes[name]}
          </option>
        ))}
      </select>
    </label>
  );
}
