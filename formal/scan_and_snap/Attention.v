(** Attention under the theory's gradient: Lemma 4, Theorem 2, Corollary 2.

    Classes are drawn with probability 1/K; psi n is the query token of class n. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums.
From Formal.scan_and_snap Require Import Decoder Signal Xi.
Open Scope R_scope.

(** Lemma 1 in expectation: entry l of dz_m/dt for the backward signals g_n of the classes. *)
Definition expected_step (M K : nat) (eta : R) (psi : nat -> nat) (F g : nat -> nat -> R) (m l : nat) : R :=
  Sum K (fun n => / INR K * kron (psi n) m * attention_step M eta (fun i => F i n) (fun i => g i n) l).

(** (9) *)
Definition signal (K : nat) (gamma : R) (iota : nat -> R) (b F : nat -> nat -> R) (l n : nat) : R :=
  gamma * (iota n * F l n - Others K n (fun n' => b n n' * F l n')).

(** (10) with the probability 1/K of a class. *)
Definition equation10 (M K : nat) (eta gamma : R) (psi : nat -> nat) (b F : nat -> nat -> R) (m l : nat) : R :=
  eta * Sum K (fun n => kron (psi n) m * (gamma * F l n / INR K *
    Others K n (fun n' => b n n' * (F l n * gram M F n n' - F l n')))).

(** xi_n for any beta. *)
Definition xi_of (M K : nat) (gamma : R) (b F : nat -> nat -> R) (n : nat) : R :=
  gamma * Others K n (fun n' => b n n' * gram M F n n').

(** @statement Scan and Snap: Lemma 4
    @kind clause
    @hypotheses any M, K, queries psi, features of norm 1, any beta, iota and gamma; every class drawn with
      probability 1/K; (9) as the backward signal
    @formula the expectation of Lemma 1's step of z_ml is (10) with the factor 1/K: eta_Z times the sum over
      classes n with psi(n) = m of gamma f_nl/K times the sum over n' other than n of beta_nn' (f_nl f_n . f_n'
      - f_n'l)
    @note Lemma 1's step stands in the bag form f (g - f (f . g)), entry by entry. *)
Theorem lemma4 :
  forall M K eta gamma iota psi b F m l, (forall n, (n < K)%nat -> gram M F n n = 1) ->
  expected_step M K eta psi F (signal K gamma iota b F) m l = equation10 M K eta gamma psi b F m l.
Proof.
  intros M K eta gamma iota psi b F m l Un. unfold expected_step, equation10. rewrite <- Sum_scal.
  apply Sum_ext. intros n Ln. unfold attention_step.
  assert (D : dot M (fun i => F i n) (fun i => signal K gamma iota b F i n) =
    gamma * (iota n - Others K n (fun n' => b n n' * gram M F n n'))).
  { unfold dot, signal.
    rewrite (Sum_ext M _ (fun i => gamma * (iota n * (F i n * F i n) - Others K n (fun n' => b n n' * (F i n * F i n'))))).
    - rewrite Sum_scal, Sum_minus, Sum_scal. fold (gram M F n n). rewrite Un by exact Ln. rewrite Rmult_1_r.
      f_equal. f_equal. unfold Others. rewrite Sum_swap. apply Sum_ext. intros a _.
      destruct (Nat.eqb a n); [apply Sum_zero; reflexivity|]. rewrite Sum_scal. reflexivity.
    - intros i _. rewrite (Others_ext K n (fun n' => b n n' * (F i n * F i n')) (fun n' => F i n * (b n n' * F i n')))
        by (intros; ring).
      rewrite Others_scal. ring. }
  rewrite D. unfold signal.
  rewrite (Others_ext K n (fun n' => b n n' * (F l n * gram M F n n' - F l n'))
    (fun n' => F l n * (b n n' * gram M F n n') + - (b n n' * F l n'))) by (intros; ring).
  rewrite Others_plus, Others_scal, Others_opp. unfold Rdiv. ring.
Qed.

(** A token is distinct to class n if no other class has it. *)
Definition distinct (K : nat) (F : nat -> nat -> R) (l n : nat) : Prop :=
  forall a, (a < K)%nat -> a <> n -> F l a = 0.

(** @statement Scan and Snap: Theorem 2(a)
    @kind clause
    @hypotheses token l is distinct to class n (f_n'l = 0 for n' other than n, f_nl > 0), xi_n > 0, eta_Z > 0;
      given features and beta
    @formula (10) at the query of n is (eta_Z/K) f_nl^2 xi_n, and positive
    @note xi_n > 0 is Theorem 1(a). *)
Theorem theorem2a :
  forall M K eta gamma psi b F n l, (n < K)%nat -> 0 < eta -> distinct K F l n -> 0 < F l n ->
  0 < xi_of M K gamma b F n ->
  equation10 M K eta gamma psi b F (psi n) l = eta / INR K * F l n ^ 2 * xi_of M K gamma b F n /\
  0 < equation10 M K eta gamma psi b F (psi n) l.
Proof.
  intros M K eta gamma psi b F n l Ln He D Pl Px.
  assert (PK : 0 < INR K) by (apply (lt_INR 0); lia).
  assert (Q : equation10 M K eta gamma psi b F (psi n) l = eta / INR K * F l n ^ 2 * xi_of M K gamma b F n).
  { unfold equation10, xi_of. rewrite (Others_split K n) by exact Ln. rewrite kron_same.
    rewrite (Others_ext K n (fun a => kron (psi a) (psi n) * _) (fun _ => 0)).
    - rewrite (Others_const K n 0 Ln).
      rewrite (Others_ext K n _ (fun n' => F l n * (b n n' * gram M F n n'))).
      + rewrite Others_scal. field. lra.
      + intros a La N. rewrite (D a La N). ring.
    - intros a La N. rewrite (D a La N). unfold Rdiv. ring. }
  split; [exact Q|]. rewrite Q. apply Rmult_lt_0_compat; [|exact Px].
  apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; lra|]. apply pow_lt, Pl.
Qed.

(** Token l is the only one that classes share: every other token is distinct to some class. *)
Definition single_common (M K : nat) (F : nat -> nat -> R) (l : nat) : Prop :=
  (l < M)%nat /\ forall j, (j < M)%nat -> j <> l -> exists k, distinct K F j k.

(** @statement Scan and Snap: Theorem 2(b)
    @kind clause
    @hypotheses every token but l is distinct to some class; features of norm 1; xi_n > 0 for the classes of
      query m, one of which has a token besides l; eta_Z > 0
    @formula (10) at m and l is -(eta_Z/K) times the sum over the classes n of m of (1 - f_nl^2) xi_n, and
      negative
    @note xi_n > 0 is Theorem 1(a). *)
Theorem theorem2b :
  forall M K eta gamma psi b F m l, 0 < eta -> (forall n, (n < K)%nat -> gram M F n n = 1) ->
  single_common M K F l -> (forall n, (n < K)%nat -> psi n = m -> 0 < xi_of M K gamma b F n) ->
  (exists n, (n < K)%nat /\ psi n = m /\ exists j, (j < M)%nat /\ j <> l /\ F j n <> 0) ->
  equation10 M K eta gamma psi b F m l =
    - (eta / INR K) * Sum K (fun n => kron (psi n) m * ((1 - F l n ^ 2) * xi_of M K gamma b F n)) /\
  equation10 M K eta gamma psi b F m l < 0.
Proof.
  intros M K eta gamma psi b F m l He Un [Ll Single] Px [n0 [Ln0 [Pn0 [j [Lj [Nj Fj]]]]]].
  assert (PK : 0 < INR K) by (apply (lt_INR 0); lia).
  (* overlaps go through l alone *)
  assert (O : forall n a, (n < K)%nat -> (a < K)%nat -> a <> n -> gram M F n a = F l n * F l a).
  { intros n a Ln La N. unfold gram. rewrite (Others_split M l _ Ll).
    rewrite (Others_ext M l _ (fun _ => 0)), (Others_const M l 0 Ll); [ring|].
    intros i Li Ni. destruct (Single i Li Ni) as [k D]. destruct (Nat.eq_dec n k) as [->|Nk].
    - rewrite (D a La N). ring.
    - rewrite (D n Ln Nk). ring. }
  assert (Q : equation10 M K eta gamma psi b F m l =
    - (eta / INR K) * Sum K (fun n => kron (psi n) m * ((1 - F l n ^ 2) * xi_of M K gamma b F n))).
  { unfold equation10, xi_of. rewrite <- !Sum_scal. apply Sum_ext. intros n Ln.
    rewrite (Others_ext K n (fun n' => b n n' * (F l n * gram M F n n' - F l n'))
      (fun n' => - (1 - F l n ^ 2) * (b n n' * F l n'))).
    - rewrite (Others_ext K n (fun n' => b n n' * gram M F n n') (fun n' => F l n * (b n n' * F l n'))).
      + rewrite !Others_scal. field. lra.
      + intros a La N. rewrite O by assumption. ring.
    - intros a La N. rewrite O by assumption. ring. }
  split; [exact Q|]. rewrite Q.
  assert (Sq : forall n, (n < K)%nat -> 1 - F l n ^ 2 = Others M l (fun i => F i n * F i n)).
  { intros n Ln. pose proof (Un n Ln) as U. unfold gram in U. rewrite (Others_split M l _ Ll) in U. lra. }
  assert (P : 0 < Sum K (fun n => kron (psi n) m * ((1 - F l n ^ 2) * xi_of M K gamma b F n))).
  { apply (Sum_pos K _ n0); [|exact Ln0|].
    - intros n Ln. unfold kron. destruct (Nat.eqb_spec (psi n) m) as [Q'|]; [|lra]. rewrite Rmult_1_l, (Sq n Ln).
      pose proof (Px n Ln Q'). apply Rmult_le_pos; [|lra]. apply Sum_nonneg. intros i _.
      destruct (Nat.eqb i l); [lra|apply Rle_0_sqr].
    - rewrite Pn0, kron_same, Rmult_1_l, (Sq n0 Ln0). apply Rmult_lt_0_compat; [|now apply Px].
      apply (Sum_pos M _ j); [|exact Lj|].
      + intros i _. destruct (Nat.eqb i l); [lra|apply Rle_0_sqr].
      + apply Nat.eqb_neq in Nj. rewrite Nj. nra. }
  assert (0 < eta / INR K) by (apply Rdiv_lt_0_compat; lra). nra.
Qed.

(** Corollary 2: c holds the unnormalised features; common tells which tokens all classes share. *)
(** @statement Scan and Snap: Corollary 2
    @kind part
    @hypotheses M >= 2, K >= 2, one query; every common token has one weight c~_l > 0 in all classes, every
      other token is distinct to one, and the squares of a class's distinct weights have one sum, positive, in
      all classes; an inverse Gram matrix; beta of Theorem 1, h > 0, eta_Z > 0
    @formula (10) is negative for every common token
    @note At a given state of this symmetry, which the paper's one-to-one map phi gives at Z = 0; that the flow
      keeps the symmetry is not part of it. *)
Theorem corollary2 :
  forall M K eta h psi (common : nat -> bool) c own Ginv m, (2 <= M)%nat -> (2 <= K)%nat -> 0 < eta -> 0 < h ->
  let F l n := c l n / norm M (fun i => c i n) in
  (forall n, (n < K)%nat -> psi n = m) ->
  (forall l, (l < M)%nat -> common l = true -> 0 < c l 0%nat /\ forall n, (n < K)%nat -> c l n = c l 0%nat) ->
  (forall l, (l < M)%nat -> common l = false -> exists k, distinct K c l k) ->
  0 < own ->
  (forall n, (n < K)%nat -> Sum M (fun l => if common l then 0 else c l n * c l n) = own) ->
  inverse_of K Ginv (gram M F) ->
  forall l, (l < M)%nat -> common l = true ->
  equation10 M K eta (gamma_of M h) psi (beta M K Ginv) F m l < 0.
Proof.
  intros M K eta h psi common c own Ginv m HM HK He Ph F One Common Distinct Po Own Inv l Ll Cl.
  assert (PK : 2 <= INR K) by (apply (le_INR 2); exact HK).
  assert (PM : 2 <= INR M) by (apply (le_INR 2); exact HM).
  set (shared := Sum M (fun i => if common i then c i 0%nat * c i 0%nat else 0)).
  assert (Ps : 0 < shared).
  { apply (Sum_pos M _ l); [|exact Ll|].
    - intros i _. destruct (common i); [apply Rle_0_sqr|lra].
    - rewrite Cl. destruct (Common l Ll Cl). nra. }
  (* products of unnormalised features *)
  assert (Same : forall n, (n < K)%nat -> dot M (fun i => c i n) (fun i => c i n) = shared + own).
  { intros n Ln. rewrite <- (Own n Ln). unfold shared. rewrite <- Sum_plus. apply Sum_ext. intros i Li.
    destruct (common i) eqn:Ci; [|ring]. destruct (Common i Li Ci) as [_ Q]. rewrite (Q n Ln). ring. }
  assert (Cross : forall n a, (n < K)%nat -> (a < K)%nat -> n <> a -> dot M (fun i => c i n) (fun i => c i a) = shared).
  { intros n a Ln La N. apply Sum_ext. intros i Li. destruct (common i) eqn:Ci.
    - destruct (Common i Li Ci) as [_ Q]. rewrite (Q n Ln), (Q a La). reflexivity.
    - destruct (Distinct i Li Ci) as [k D]. destruct (Nat.eq_dec n k) as [->|Nk].
      + rewrite (D a La) by auto. ring.
      + rewrite (D n Ln Nk). ring. }
  set (rho := shared / (shared + own)).
  assert (Hr : 0 < rho < 1).
  { unfold rho. split; [apply Rdiv_lt_0_compat; lra|]. apply (Rmult_lt_reg_r (shared + own)); [lra|].
    replace (shared / (shared + own) * (shared + own)) with shared by (field; lra). lra. }
  assert (Nn : forall n, (n < K)%nat -> norm M (fun i => c i n) = sqrt (shared + own)).
  { intros n Ln. unfold norm. now rewrite Same. }
  assert (Root : sqrt (shared + own) * sqrt (shared + own) = shared + own) by (apply sqrt_sqrt; lra).
  assert (Rp : 0 < sqrt (shared + own)) by (apply sqrt_lt_R0; lra).
  assert (Even : forall a a', (a < K)%nat -> (a' < K)%nat -> gram M F a a' = if Nat.eqb a a' then 1 else rho).
  { intros a a' La La'. unfold gram, F. rewrite (Nn a La), (Nn a' La').
    rewrite (Sum_ext M _ (fun i => / (shared + own) * (c i a * c i a'))).
    - rewrite Sum_scal. fold (dot M (fun i => c i a) (fun i => c i a')).
      destruct (Nat.eqb_spec a a') as [<-|N]; [rewrite Same by exact La|rewrite Cross by assumption]; unfold rho; field; lra.
    - intros i _. clear - Root Rp. set (r := sqrt (shared + own)) in *. rewrite <- Root. field. lra. }
  assert (Pg : 0 < gamma_of M h).
  { unfold gamma_of. pose proof (exp_pos (INR M * h)). apply Rdiv_lt_0_compat; [|lra].
    apply Rmult_lt_0_compat; [apply pow_lt; lra|exact Ph]. }
  set (v := c l 0%nat / sqrt (shared + own)).
  assert (Pv : 0 < v) by (apply Rdiv_lt_0_compat; [destruct (Common l Ll Cl); lra|exact Rp]).
  assert (Fv : forall n, (n < K)%nat -> F l n = v).
  { intros n Ln. unfold F, v. rewrite (Nn n Ln). destruct (Common l Ll Cl) as [_ Q]. now rewrite (Q n Ln). }
  set (be := INR M * (1 + (INR M - 1) * rho) / ((INR M - 1) ^ 2 * (1 - rho) * (1 + (INR K - 1) * rho))).
  assert (Pb : 0 < be).
  { unfold be. assert (0 < (INR M - 1) ^ 2) by (apply pow_lt; lra).
    assert (0 < 1 + (INR K - 1) * rho) by nra. assert (0 < 1 + (INR M - 1) * rho) by nra.
    apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; lra|].
    apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; lra|lra]. }
  unfold equation10.
  rewrite (Sum_ext K _ (fun _ => gamma_of M h * v / INR K * ((INR K - 1) * (be * (v * rho - v))))).
  - rewrite Sum_const.
    replace (eta * (INR K * (gamma_of M h * v / INR K * ((INR K - 1) * (be * (v * rho - v))))))
      with (- (eta * gamma_of M h * v * v * (INR K - 1) * be * (1 - rho))) by (field; lra).
    clearbody v be rho. generalize dependent (gamma_of M h). intros g Pg.
    assert (0 < eta * g * v * v * (INR K - 1) * be * (1 - rho)); [|lra].
    repeat apply Rmult_lt_0_compat; lra.
  - intros n Ln. rewrite (One n Ln), kron_same, Rmult_1_l, (Fv n Ln). f_equal.
    rewrite (Others_ext K n _ (fun _ => be * (v * rho - v))).
    + apply Others_const, Ln.
    + intros a La N. rewrite (even_beta M K F Ginv rho HM HK Inv Hr Even n a Ln La N), (Fv a La), Even by assumption.
      apply not_eq_sym, Nat.eqb_neq in N. rewrite N. reflexivity.
Qed.
