import { Component, type ReactNode } from "react";

import { Failure } from "../ui/Notice.tsx";

/** Shows a failure of a view in its place; the rest of the page works on. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: undefined };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div className="view">
        <Failure error={this.state.error} onRetry={() => this.setState({ error: undefined })} />
      </div>
    );
  }
}
