import type { ButtonHTMLAttributes } from "react";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  kind?: "plain" | "primary" | "danger" | "quiet";
};

export function Button({ kind = "plain", className, ...rest }: ButtonProps) {
  return <button type="button" {...rest} data-kind={kind} className={`button ${className ?? ""}`} />;
}
